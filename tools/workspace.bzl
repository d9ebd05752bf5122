"""The repositories that a workspace needs to build with Weft."""

def weft_repositories(path):
    """Defines the repositories that Bazel 4 would otherwise fetch from the network: two of Debian's, two stubs of Weft's.

    Args:
      path: Weft's folder, absolute or relative to the workspace that calls this.
    """
    for name in ["java", "proto"]:
        native.local_repository(name = "rules_" + name, path = "/usr/share/bazel/rules/" + name)
    for name in ["rules_cc", "remote_coverage_tools"]:
        native.local_repository(name = name, path = path + "/third_party/" + name)

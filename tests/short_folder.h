// A ShortFolder is a new folder directly in /tmp, which is removed at the end. Open MPI puts sockets into TMPDIR, and
// the path of a socket has at most 107 bytes, which paths in a test's own folder exceed.
//
//   const ShortFolder folder("mpi");
//   RunCommand({"env", "TMPDIR=" + folder.path(), "mpirun", ...});
#ifndef WEFT_TESTS_SHORT_FOLDER_H_
#define WEFT_TESTS_SHORT_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "weft/base/status.h"

namespace weft {

class ShortFolder {
 public:
  // mkdtemp replaces the last six characters of the path, which must be X, by others.
  explicit ShortFolder(const std::string& name) : path_("/tmp/weft-" + name + "-" + std::string(6, 'X')) {
    WEFT_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ShortFolder(const ShortFolder&) = delete;
  ShortFolder& operator=(const ShortFolder&) = delete;
  ~ShortFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weft

#endif  // WEFT_TESTS_SHORT_FOLDER_H_

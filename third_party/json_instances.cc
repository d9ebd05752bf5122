// Instantiates the parser and the writer of JSON, which json_instances.h declares.
#define WEFT_JSON_INSTANCE template
#include "third_party/json_instances.h"

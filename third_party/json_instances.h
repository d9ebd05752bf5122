// Declares that the parser and the writer of JSON are instantiated in json_instances.cc. Files that load a precompiled
// header with JSON then need not instantiate them, which takes about half a second each.
#ifndef WEFT_THIRD_PARTY_JSON_INSTANCES_H_
#define WEFT_THIRD_PARTY_JSON_INSTANCES_H_

#include <nlohmann/json.hpp>
#include <string>

#ifndef WEFT_JSON_INSTANCE
#define WEFT_JSON_INSTANCE extern template
#endif

WEFT_JSON_INSTANCE class nlohmann::detail::serializer<nlohmann::json>;
WEFT_JSON_INSTANCE class nlohmann::detail::serializer<nlohmann::ordered_json>;

#define WEFT_JSON_INPUT(Iterator)                                                                        \
  WEFT_JSON_INSTANCE class nlohmann::detail::lexer<nlohmann::json,                                       \
                                                   nlohmann::detail::iterator_input_adapter<Iterator>>;  \
  WEFT_JSON_INSTANCE class nlohmann::detail::parser<nlohmann::json,                                      \
                                                    nlohmann::detail::iterator_input_adapter<Iterator>>; \
  WEFT_JSON_INSTANCE class nlohmann::detail::lexer<nlohmann::ordered_json,                               \
                                                   nlohmann::detail::iterator_input_adapter<Iterator>>;  \
  WEFT_JSON_INSTANCE class nlohmann::detail::parser<nlohmann::ordered_json,                              \
                                                    nlohmann::detail::iterator_input_adapter<Iterator>>;
WEFT_JSON_INPUT(const char*)
WEFT_JSON_INPUT(std::string::const_iterator)
#undef WEFT_JSON_INPUT

#endif  // WEFT_THIRD_PARTY_JSON_INSTANCES_H_

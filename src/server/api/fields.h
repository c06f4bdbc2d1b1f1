// Typed access to the fields of a request's JSON body. All errors are ApiError (400) that name the field.
#ifndef LATTICE_SERVER_API_FIELDS_H_
#define LATTICE_SERVER_API_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lattice::server {

// A JSON object. A field that is null counts as absent. Finish refuses fields that nobody has asked for.
class Fields {
 public:
  // An empty body is an empty object.
  explicit Fields(std::string_view body);

  // Null when absent.
  const nlohmann::json* Find(const std::string& name);

  bool Bool(const std::string& name, bool otherwise);
  int64_t Integer(const std::string& name, int64_t otherwise, int64_t least, int64_t most);
  double Number(const std::string& name, double otherwise, double least, double most);
  std::string String(const std::string& name, const std::string& otherwise);
  // A list of at most `most` token ids in [0, vocabulary).
  std::vector<int32_t> Ids(const nlohmann::json& value, const std::string& name, int64_t vocabulary,
                           int64_t most);
  // For fields of OpenAI's API that this server does not support: absent or one of these neutral values.
  void Neutral(const std::string& name, std::initializer_list<nlohmann::json> values);
  // Accepts any value of the field, which is not used.
  void Ignore(const std::string& name) { known_.insert(name); }

  // Throws when there is a field that nobody has asked for.
  void Finish();

 private:
  nlohmann::json body_;
  std::set<std::string> known_;
};

// The kind of a value for messages: "a string", "null", ...
std::string KindOf(const nlohmann::json& value);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_FIELDS_H_

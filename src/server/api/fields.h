// Typed access to the fields of a request's JSON body; what is wrong becomes an ApiError (400) that names the
// field.
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

// A JSON object. A field that is null counts as absent. Every field asked for is known; Finish refuses the
// others.
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
  // Ids in [0, vocabulary), at most `most`.
  std::vector<int32_t> Ids(const nlohmann::json& value, const std::string& name, int64_t vocabulary,
                           int64_t most);
  // The field must be absent or one of these values: OpenAI has it, this server does not.
  void Neutral(const std::string& name, std::initializer_list<nlohmann::json> values);
  // The field may be anything and is not used.
  void Ignore(const std::string& name) { known_.insert(name); }

  // Throws when there is a field that nobody asked for.
  void Finish();

 private:
  nlohmann::json body_;
  std::set<std::string> known_;
};

// "a string", "null", ...: what a value is, for messages.
std::string KindOf(const nlohmann::json& value);

}  // namespace lattice::server

#endif  // LATTICE_SERVER_API_FIELDS_H_

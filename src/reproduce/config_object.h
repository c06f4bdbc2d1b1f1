// Reads the JSON that describes experiments and the leaderboard.
#ifndef LATTICE_REPRODUCE_CONFIG_OBJECT_H_
#define LATTICE_REPRODUCE_CONFIG_OBJECT_H_

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/error.h"

namespace lattice::reproduce {

// Typed access to a JSON object of a file; Finish refuses keys that nobody has read. `value` must outlive it, and
// `source` names it in errors.
class ConfigObject {
 public:
  ConfigObject(const nlohmann::json& value, std::string source) : value_(value), source_(std::move(source)) {
    Check(value_.is_object(), source_, ": expected an object");
  }

  template <typename T>
  T Need(const std::string& key) {
    known_.insert(key);
    Check(value_.contains(key), source_, ": \"", key, "\" is missing");
    return Cast<T>(key);
  }

  template <typename T>
  T Get(const std::string& key, T fallback) {
    known_.insert(key);
    return value_.contains(key) ? Cast<T>(key) : fallback;
  }

  // Call after everything was read.
  void Finish() const {
    for (const auto& [key, unused] : value_.items())
      Check(known_.contains(key), source_, ": there is no key \"", key, "\"");
  }

 private:
  template <typename T>
  T Cast(const std::string& key) const {
    try {
      return value_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      Fail(source_, ": \"", key, "\" has the wrong type");
    }
  }

  const nlohmann::json& value_;
  std::string source_;
  std::set<std::string> known_;
};

}  // namespace lattice::reproduce

#endif  // LATTICE_REPRODUCE_CONFIG_OBJECT_H_

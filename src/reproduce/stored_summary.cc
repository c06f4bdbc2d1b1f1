// Parses results.json back into a summary.
#include "reproduce/stored_summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lattice::reproduce {
namespace {

using nlohmann::json;

double NumberOf(const json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

// The index of the element with that name; throws Error when there is none.
template <typename List, typename NameOf>
size_t IndexOf(const List& list, const std::string& name, const char* what, const NameOf& name_of) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& one) { return name_of(one) == name; });
  Check(at != list.end(), "[reproduce] results.json has the ", what, " \"", name,
        "\", which the experiment does not have; make the runs again, or restore the experiment");
  return static_cast<size_t>(at - list.begin());
}

Row ReadRow(const json& stored, const Experiment& experiment, const PaperTable& paper) {
  Row row;
  row.variant = IndexOf(experiment.variants, stored.at("variant"), "variant",
                        [](const Variant& variant) { return variant.name; });
  row.point =
      IndexOf(experiment.points, stored.at("point"), "point", [](const Point& point) { return point.label; });
  row.rate = stored.at("rate");
  row.chosen = stored.value("chosen", "");
  row.paper = paper.Value(experiment.name, stored.at("variant"), experiment.points[row.point].paper);
  for (const json& run : stored.at("runs")) {
    json result = run;
    for (const char* key : {"parameters", "non_embedding", "tokens", "corpus"}) result[key] = stored.at(key);
    row.results.push_back(std::move(result));
    row.values.push_back(NumberOf(run.at("value")));
  }
  Check(!row.results.empty(), "[reproduce] results.json has a row without runs: ", stored.at("variant"));
  return row;
}

TunedRate ReadTuned(const json& stored) {
  TunedRate out{stored.at("group"), {}, std::nullopt};
  if (!stored.at("best").is_null()) out.best = stored.at("best").get<double>();
  for (const json& rate : stored.at("rates")) {
    // A missing value means that the run diverged or, if the best rate is not known either, that it is not
    // done.
    const bool done = out.best || !rate.at("value").is_null();
    out.figures.emplace_back(rate.at("rate").get<double>(),
                             done ? std::optional(NumberOf(rate.at("value"))) : std::nullopt);
  }
  return out;
}

}  // namespace

Summary ReadSummary(const json& results, const Experiment& experiment, const PaperTable& paper) {
  for (const auto& [key, wanted] : {std::pair{"experiment", experiment.name}, {"scale", experiment.scale}}) {
    Check(results.at(key) == wanted, "[reproduce] results.json is of the ", key, " ", results.at(key),
          "; expected \"", wanted, "\"");
  }
  Summary out;
  out.experiment = &experiment;
  out.command = results.at("command");
  out.runs = results.at("runs");
  out.wanted = results.at("wanted");
  for (const json& stored : results.at("rows")) out.rows.push_back(ReadRow(stored, experiment, paper));
  for (const json& stored : results.value("tuning", json::array())) out.tuning.push_back(ReadTuned(stored));
  Conclude(out, paper);
  return out;
}

}  // namespace lattice::reproduce

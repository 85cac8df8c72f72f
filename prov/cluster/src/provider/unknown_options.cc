#include "provider/unknown_options.h"

#include <algorithm>
#include <numeric>

#include "provider/options.h"

namespace cluster::provider {
namespace {

constexpr std::string_view kPrefix = "FI_CLUSTER_";
constexpr std::size_t kNameShown = 64;

/// Empty if none is spelled similarly: of each three letters one may be wrong.
std::string nearest_option(std::string_view name) {
  std::string nearest;
  std::size_t least = name.size() > kPrefix.size() ? (name.size() - kPrefix.size()) / 3 + 2 : 0;
  for (const OptionRow& row : option_rows()) {
    const std::size_t distance = spelling_distance(name, variable(row));
    if (distance >= least) continue;
    least = distance;
    nearest = variable(row);
  }
  return nearest;
}

}  // namespace

std::size_t spelling_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : one) {
    std::size_t diagonal = row[0]++;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const std::size_t changed = diagonal + (letter == other[i] ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min({changed, diagonal + 1, row[i] + 1});
    }
  }
  return row.back();
}

std::vector<UnknownOption> unknown_options(const char* const* environment) {
  std::vector<UnknownOption> unknown;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view setting(*environment);
    const std::string_view name = setting.substr(0, setting.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const auto rows = option_rows();
    const auto is_name = [&](const OptionRow& row) { return variable(row) == name; };
    if (std::any_of(rows.begin(), rows.end(), is_name)) continue;
    const std::string shown(name.substr(0, kNameShown));
    const std::string nearest = nearest_option(shown);
    const std::string cure = nearest.empty() ? "cluster-info --host lists them" : "is " + nearest + " meant?";
    unknown.push_back({shown, shown + " is set and has no effect: there is no such option (" + cure + ")"});
  }
  return unknown;
}

}  // namespace cluster::provider

#include "environment_check.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "provider/options.h"

namespace cluster::info {
namespace {

constexpr std::string_view kName = "cluster";
constexpr const char* kFile = "libcluster-fi.so";
constexpr std::size_t kMisspelledMax = 2;  // letters

std::vector<std::string> items(std::string_view list, std::string_view separators) {
  std::vector<std::string> found;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    if (end != 0) found.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return found;
}

bool has_provider(const std::string& item) {
  if (item.starts_with('@')) return item.ends_with(kFile) && ::access(item.c_str() + 1, R_OK) == 0;
  const std::string directory = item.starts_with('+') ? item.substr(1) : item;
  return ::access((directory + "/" + kFile).c_str(), R_OK) == 0;
}

}  // namespace

std::string provider_trouble(const char* value) {
  if (value == nullptr || *value == '\0') return "";
  const std::string text = value;
  const bool without = text.front() == '^';
  std::vector<std::string> names = items(text.substr(without ? 1 : 0), ",;");
  for (std::string& name : names)
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool named = std::find(names.begin(), names.end(), kName) != names.end();
  if (named && without)
    return "FI_PROVIDER=" + text + " leaves cluster out: unset FI_PROVIDER, or set it to cluster";
  if (named || without) return "";
  const auto misspelled = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return provider::spelling_distance(name, kName) <= kMisspelledMax;
  });
  return misspelled == names.end()
             ? ""
             : "FI_PROVIDER names " + *misspelled + ", which is not a provider: set FI_PROVIDER=cluster";
}

std::string provider_path_trouble(const char* value) {
  if (value == nullptr || *value == '\0') return "";
  const std::vector<std::string> places = items(value, ":");
  if (std::any_of(places.begin(), places.end(), has_provider)) return "";
  return "FI_PROVIDER_PATH=" + std::string(value) + " has no " + kFile +
         " that can be read: libfabric will not find cluster there; name the directory that has it";
}

}  // namespace cluster::info

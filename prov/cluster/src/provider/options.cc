#include "provider/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <numeric>

#include "crypto/cryptography.h"

namespace cluster::provider {
namespace {

constexpr OptionRow kRows[] = {
#define OPTION(name, kind, unit, fallback, min, max, help) \
  {#name, OptionKind::kind, unit, fallback, min, max, help},
#include "provider/options.def"
#undef OPTION
};

constexpr const char* kSecretShown = "(set)";
constexpr std::size_t kTextMax = 64;
constexpr std::size_t kPathMax = 4095;

std::string each_letter(std::string_view text, int (*change)(int)) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return result;
}

std::string lower(std::string_view text) { return each_letter(text, std::tolower); }

/// Returns true if `word` is one of `words`, which are separated by "|".
bool listed(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('|'), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

std::optional<std::uint64_t> parse_boolean(std::string_view written) {
  const std::string word = lower(written);
  if (listed("1|yes|true|on", word)) return 1;
  if (listed("0|no|false|off", word)) return 0;
  return std::nullopt;
}

/// Parses a number. If `with_suffix` is true (for sizes), the letter k or m may follow the digits.
std::optional<std::uint64_t> parse_number(std::string_view written, bool with_suffix) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string suffix = lower(written.substr(static_cast<std::size_t>(end - written.data())));
  if (suffix.empty()) return number;
  const unsigned shift = suffix == "k" ? 10 : suffix == "m" ? 20 : 0;
  if (!with_suffix || shift == 0 || number > UINT64_MAX >> shift) return std::nullopt;
  return number << shift;
}

/// Parses a port or a range of ports, such as "40000-40063". An empty text means no range.
std::optional<std::uint64_t> parse_ports(std::string_view written, std::uint64_t min, std::uint64_t max) {
  if (written.empty()) return 0;
  const std::size_t dash = std::min(written.find('-'), written.size());
  const std::optional<std::uint64_t> first = parse_number(written.substr(0, dash), false);
  const std::optional<std::uint64_t> last =
      dash == written.size() ? first : parse_number(written.substr(dash + 1), false);
  if (!first || !last || *first < min || *last > max || *first > *last) return std::nullopt;
  return *first | *last << 16;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes != 0 && bytes % (1u << 20) == 0) return std::to_string(bytes >> 20) + "m";
  if (bytes != 0 && bytes % (1u << 10) == 0) return std::to_string(bytes >> 10) + "k";
  return std::to_string(bytes);
}

/// Returns the first kTextMax characters, with each unprintable character replaced by a question mark.
std::string printable(std::string_view written) {
  std::string text(written.substr(0, kTextMax));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isprint(c) == 0; }, '?');
  return text;
}

std::string option_error(const OptionRow& row, std::string_view written) {
  const std::string shown = row.kind == OptionKind::secret ? "(a secret)" : printable(written);
  return variable(row) + "=" + shown + " is refused, allowed: " + allowed(row) +
         "; this provider offers nothing until the value is corrected";
}

constexpr std::string_view kPrefix = "FI_CLUSTER_";
constexpr std::size_t kNameShown = 64;

/// Returns the option with the most similar name, or an empty text if no name is similar. A name counts as
/// similar if at least about two thirds of its letters match.
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

std::span<const OptionRow> option_rows() { return kRows; }

std::string variable(const OptionRow& row) { return "FI_CLUSTER_" + each_letter(row.name, std::toupper); }

std::string allowed(const OptionRow& row) {
  switch (row.kind) {
    case OptionKind::path: return "at most " + std::to_string(kPathMax) + " characters";
    case OptionKind::secret: return "one or two keys of 32 to 128 hexadecimal digits, separated by a comma";
    case OptionKind::text: return "at most " + std::to_string(kTextMax) + " characters";
    case OptionKind::boolean: return "yes or no";
    case OptionKind::ports:
      return "first-last, both " + std::to_string(row.min) + " to " + std::to_string(row.max);
    case OptionKind::choice: {
      std::string words;
      for (const char c : std::string_view(row.unit))
        words += c == '|' ? std::string(", ") : std::string(1, c);
      return words;
    }
    case OptionKind::number:
    case OptionKind::duration:
      return std::to_string(row.min) + " to " + std::to_string(row.max) + " " + row.unit;
    case OptionKind::size: return size_text(row.min) + " to " + size_text(row.max) + " " + row.unit;
  }
  return {};
}

std::string help_text(const OptionRow& row) {
  const std::string fallback = *row.fallback == '\0' ? "none" : row.fallback;
  return std::string(row.help) + " (default " + fallback + "; allowed: " + allowed(row) + ")";
}

std::optional<Options::Value> Options::parse(const OptionRow& row, std::string_view written) {
  std::optional<std::uint64_t> number;
  switch (row.kind) {
    case OptionKind::path:
    case OptionKind::secret:
    case OptionKind::text:
      if (written.size() > (row.kind == OptionKind::text ? kTextMax : kPathMax)) return std::nullopt;
      return Value{std::string(written), 0, {}};
    case OptionKind::choice:
      if (!listed(row.unit, lower(written))) return std::nullopt;
      return Value{lower(written), 0, {}};
    case OptionKind::ports:
      number = parse_ports(written, row.min, row.max);
      return number ? std::optional(Value{{}, *number, {}}) : std::nullopt;
    case OptionKind::boolean: number = parse_boolean(written); break;
    case OptionKind::number:
    case OptionKind::duration: number = parse_number(written, false); break;
    case OptionKind::size: number = parse_number(written, true); break;
  }
  if (!number || *number < row.min || *number > row.max) return std::nullopt;
  return Value{{}, *number, {}};
}

Options::Options() {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = *parse(kRows[i], kRows[i].fallback);
}

Options::Options(const std::function<std::optional<std::string>(const OptionRow&)>& ask,
                 std::vector<std::string>& errors)
    : Options() {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    std::optional<std::string> written = ask(kRows[i]);
    // An empty value means the default, because some scripts unset a variable this way.
    if (!written || written->empty()) continue;
    if (std::optional<Value> parsed = parse(kRows[i], *written)) {
      values_[i] = std::move(*parsed);
      values_[i].written = kRows[i].kind == OptionKind::secret ? kSecretShown : *written;
    } else {
      errors.push_back(option_error(kRows[i], *written));
    }
    if (kRows[i].kind == OptionKind::secret) crypto::wipe(*written);
  }
}

void Options::wipe(Name name) { crypto::wipe(values_[static_cast<std::size_t>(name)].text); }

PortRange Options::ports() const {
  const std::uint64_t both = number(Name::ports);
  return {static_cast<std::uint16_t>(both), static_cast<std::uint16_t>(both >> 16)};
}

transport::EngineSettings Options::settings() const {
  transport::EngineSettings settings;
  if (!ports().any()) settings.team_port = ports().first;
  settings.shm = boolean(Name::shm);
  settings.shm_eager_max = number(Name::shm_eager);
  settings.net_eager_max = number(Name::net_eager);
  settings.peer_timeout = std::chrono::milliseconds(number(Name::peer_timeout));
  settings.outage = std::chrono::milliseconds(number(Name::outage));
  settings.end_abandoned = boolean(Name::end_abandoned);
  settings.stuck_timeout = std::chrono::milliseconds(number(Name::stuck_timeout));
  return settings;
}

os::PacketSettings Options::packet_settings() const {
  os::PacketSettings settings;
  settings.rings = number(Name::test_rings);
  if (from_user(Name::test_rings)) settings.ring_groups = 1;
  settings.qdisc_bypass = boolean(Name::qdisc_bypass);
  if (text(Name::ethertype) != "auto") settings.ethertype = text(Name::ethertype) == "yes";
  return settings;
}

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
    const std::string cure =
        nearest.empty() ? "\"cluster-info --host\" lists the options" : "is " + nearest + " meant?";
    unknown.push_back({shown, shown + " is set and has no effect: there is no such option (" + cure + ")"});
  }
  return unknown;
}

}  // namespace cluster::provider

// The options of the provider, FI_CLUSTER_*, each one row of options.def. The list of fi_info -g, the check
// of values and the help texts come from these rows. libfabric passes values as strings. They are parsed
// here, so that units and ranges are checked. If a value is not allowed, the provider offers nothing; it
// never falls back to a default.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/packet_link.h"
#include "transport/engine_settings.h"

namespace cluster::provider {

enum class OptionKind : std::uint8_t { text, choice, path, secret, boolean, number, size, duration };

struct OptionRow {
  const char* name;
  OptionKind kind;
  const char* unit;
  const char* fallback;  ///< the default, as a user would write it
  std::uint64_t min;
  std::uint64_t max;
  const char* help;
};

std::span<const OptionRow> option_rows();
/// Returns the environment variable of the option.
std::string variable(const OptionRow& row);
/// Returns the allowed values: "auto, packet, udp", "0 to 1m bytes".
std::string allowed(const OptionRow& row);
/// Returns the help with unit, default and range, for `fi_info -g`.
std::string help_text(const OptionRow& row);

class Options {
 public:
  enum class Name : std::uint8_t {
#define OPTION(name, kind, unit, fallback, min, max, help) name,
#include "provider/options.def"
#undef OPTION
    count
  };

  /// Sets all options to their defaults.
  Options();
  /// Sets the options to the values that `ask` returns for the rows (nullopt: the default). Each value that
  /// is not allowed adds one line to `errors`, with option, value and the allowed values.
  Options(const std::function<std::optional<std::string>(const OptionRow&)>& ask,
          std::vector<std::string>& errors);

  const std::string& text(Name name) const { return value(name).text; }
  /// Returns true if the user has set the option, even if it is a secret that has been wiped since.
  bool from_user(Name name) const { return !value(name).written.empty(); }
  /// Overwrites the text of the option in this object.
  void wipe(Name name);
  std::uint64_t number(Name name) const { return value(name).number; }
  bool boolean(Name name) const { return value(name).number != 0; }

  /// Calls visit(row, value, from_user) for every option in the order of the table. `value` is the default or
  /// as the user wrote it; the value of a secret is not shown.
  template <typename Visitor>
  void each(Visitor&& visit) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool from_user = !values_[i].written.empty();
      visit(option_rows()[i], from_user ? values_[i].written : std::string(option_rows()[i].fallback),
            from_user);
    }
  }

  transport::EngineSettings settings() const;
  os::PacketSettings packet_settings() const;

 private:
  struct Value {
    std::string text;  ///< of text and choice
    std::uint64_t number = 0;
    std::string written;  ///< as the user wrote it, but never a secret; empty: the default is in force
  };

  static std::optional<Value> parse(const OptionRow& row, std::string_view written);
  const Value& value(Name name) const { return values_[static_cast<std::size_t>(name)]; }

  std::array<Value, static_cast<std::size_t>(Name::count)> values_;
};

/// A variable that looks like an option of the provider but is none. It has no effect, although the user
/// expects one.
struct UnknownOption {
  std::string name;
  std::string line;  ///< tells the user that it has no effect, and which option is spelled most like it
};

/// Returns the unknown options of an environment in the form of `environ`. `environment` may be null.
std::vector<UnknownOption> unknown_options(const char* const* environment);

/// Returns how many letters must be changed, removed or added to turn one word into the other.
std::size_t spelling_distance(std::string_view one, std::string_view other);

}  // namespace cluster::provider

// The options of the provider (FI_CLUSTER_*). Each option is one row of options.def. The rows determine the
// allowed values, the help texts and the list of fi_info -g. libfabric passes values as strings. This
// component parses them, and checks units and ranges. If a value is not allowed, the provider offers nothing;
// it never uses a default instead.
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

enum class OptionKind : std::uint8_t { text, choice, path, secret, boolean, number, size, duration, ports };

struct OptionRow {
  const char* name;
  OptionKind kind;
  const char* unit;
  const char* fallback;  ///< the default, written as a user would write it
  std::uint64_t min;
  std::uint64_t max;
  const char* help;
};

/// The ports from `first` to `last`. If `first` is 0, the user has set no range.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  bool any() const { return first == 0; }
};

std::span<const OptionRow> option_rows();
/// Returns the name of the option's environment variable.
std::string variable(const OptionRow& row);
/// Returns a text with the allowed values, such as "auto, packet, udp" or "0 to 1m bytes".
std::string allowed(const OptionRow& row);
/// Returns the help text for `fi_info -g`, including unit, default and range.
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
  /// Calls `ask` for each row and sets the option to the returned value, or to the default if `ask` returns
  /// nullopt. For each value that is not allowed, adds one line to `errors`, which names the option, the
  /// value and the allowed values.
  Options(const std::function<std::optional<std::string>(const OptionRow&)>& ask,
          std::vector<std::string>& errors);

  const std::string& text(Name name) const { return value(name).text; }
  /// Returns true if the user has set the option. For a secret, the result stays true after the secret was
  /// wiped.
  bool from_user(Name name) const { return !value(name).written.empty(); }
  /// Overwrites the option's text in this object.
  void wipe(Name name);
  std::uint64_t number(Name name) const { return value(name).number; }
  PortRange ports() const;
  bool boolean(Name name) const { return value(name).number != 0; }

  /// Calls visit(row, value, from_user) for every option, in the order of the table. `value` is the text that
  /// the user has written, or the default. For a secret it is a placeholder.
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
    std::string text;          ///< the value, if the kind is text, path, choice or secret
    std::uint64_t number = 0;  ///< the value of all other kinds; for ports: first port | last port << 16
    /// The text that the user has written, or a placeholder if the option is a secret. Empty if the default
    /// applies.
    std::string written;
  };

  static std::optional<Value> parse(const OptionRow& row, std::string_view written);
  const Value& value(Name name) const { return values_[static_cast<std::size_t>(name)]; }

  std::array<Value, static_cast<std::size_t>(Name::count)> values_;
};

/// An environment variable whose name looks like an option of the provider, although there is no such option.
/// The variable has no effect, but its user expects an effect.
struct UnknownOption {
  std::string name;
  /// A log line. It says that the variable has no effect. It names the option with the most similar name, if
  /// any name is similar.
  std::string line;
};

/// Returns the unknown options in `environment`, which has the format of `environ` and may be null.
std::vector<UnknownOption> unknown_options(const char* const* environment);

/// Returns the smallest number of letters that must be changed, removed or added to turn one word into the
/// other.
std::size_t spelling_distance(std::string_view one, std::string_view other);

}  // namespace cluster::provider

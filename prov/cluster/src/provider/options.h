// The options of the provider, FI_CLUSTER_*: one row each in options.def. The list that fi_info -g prints,
// the check of values and the help texts come from these rows. libfabric passes values as strings; they are
// parsed here, so that units and ranges are checked. A value that is not allowed makes the provider offer
// nothing; it is never replaced by a default.
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
/// Its environment variable.
std::string variable(const OptionRow& row);
/// The values allowed: "auto, packet, udp", "0 to 1m bytes".
std::string allowed(const OptionRow& row);
/// The help with unit, default and range, for `fi_info -g`.
std::string help_text(const OptionRow& row);

class Options {
 public:
  enum class Name : std::uint8_t {
#define OPTION(name, kind, unit, fallback, min, max, help) name,
#include "provider/options.def"
#undef OPTION
    count
  };

  /// All defaults.
  Options();
  /// The values that `ask` returns for the rows (nullopt: the default). Every value that is not allowed adds
  /// one line to `errors` with option, value and what is allowed.
  Options(const std::function<std::optional<std::string>(const OptionRow&)>& ask,
          std::vector<std::string>& errors);

  const std::string& text(Name name) const { return value(name).text; }
  /// True if the user has set it, even if it is a secret that has been wiped since.
  bool from_user(Name name) const { return !value(name).written.empty(); }
  /// Its bytes are no longer in this object.
  void wipe(Name name);
  std::uint64_t number(Name name) const { return value(name).number; }
  bool boolean(Name name) const { return value(name).number != 0; }

  /// Calls visit(row, value, from_user) for every option in the order of the table; `value` is as the user
  /// wrote it, or the default. That of a secret is not shown.
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
    std::string text;  ///< text and choice
    std::uint64_t number = 0;
    std::string written;  ///< as the user wrote it, a secret never; empty: the default is in force
  };

  static std::optional<Value> parse(const OptionRow& row, std::string_view written);
  const Value& value(Name name) const { return values_[static_cast<std::size_t>(name)]; }

  std::array<Value, static_cast<std::size_t>(Name::count)> values_;
};

/// A variable that looks like an option of the provider and is none. It has no effect, though its user believes that it has.
struct UnknownOption {
  std::string name;
  std::string line;  ///< for the user: it has no effect, and which option is spelled most like it
};

/// Those of an environment in the form of `environ`; null: an empty one.
std::vector<UnknownOption> unknown_options(const char* const* environment);

/// How many letters must be changed, removed or added to turn one word into the other.
std::size_t spelling_distance(std::string_view one, std::string_view other);

}  // namespace cluster::provider

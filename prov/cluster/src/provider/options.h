// The options of the provider, FI_CLUSTER_*: one row each in options.def, from which come what
// libfabric lists, the check of what users say, and the help. Values are strings to libfabric and
// parsed here, so that units and ranges can be checked; a value that makes no sense is refused, never
// replaced by a guess.
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

#include "engine/engine_settings.h"
#include "os/packet_link.h"

namespace cluster::provider {

enum class OptionKind : std::uint8_t { text, choice, boolean, number, size, duration };

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
/// The environment variable by which users set it.
std::string variable(const OptionRow& row);
/// What a user may say: "auto, packet or udp", "64k to 64m bytes".
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
  /// What `ask` says for each row (nothing: the default). Every refused value adds one line to
  /// `errors` that names option, value and what is allowed.
  Options(const std::function<std::optional<std::string>(const OptionRow&)>& ask,
          std::vector<std::string>& errors);

  const std::string& text(Name name) const { return value(name).text; }
  std::uint64_t number(Name name) const { return value(name).number; }
  bool boolean(Name name) const { return value(name).number != 0; }

  /// Calls visit(row, value, said) for every option in the order of the table: its value as the user wrote
  /// it, or the default, and whether he did.
  template <typename Visitor>
  void each(Visitor&& visit) const {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool said = !values_[i].written.empty();
      visit(option_rows()[i], said ? values_[i].written : std::string(option_rows()[i].fallback), said);
    }
  }

  engine::EngineSettings settings() const;
  os::PacketSettings packet_settings() const;

 private:
  struct Value {
    std::string text;  ///< text and choice
    std::uint64_t number = 0;
    std::string written;  ///< by the user, if he did
  };

  static std::optional<Value> parse(const OptionRow& row, std::string_view said);
  const Value& value(Name name) const { return values_[static_cast<std::size_t>(name)]; }

  std::array<Value, static_cast<std::size_t>(Name::count)> values_;
};

}  // namespace cluster::provider

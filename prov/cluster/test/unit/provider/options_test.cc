// Options: what users may say, what is refused and in which words, and that the defaults in the table
// are those of the settings they fill.
#include "provider/options.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace cluster::provider {
namespace {

struct Said {
  std::map<std::string, std::string> values;
  std::vector<std::string> errors;

  Options read() {
    errors.clear();
    return Options(
        [this](const OptionRow& row) -> std::optional<std::string> {
          const auto found = values.find(row.name);
          if (found == values.end()) return std::nullopt;
          return found->second;
        },
        errors);
  }
  bool refused() {
    static_cast<void>(read());
    return !errors.empty();
  }
};

TEST(Options, DefaultsAreThoseOfTheSettings) {
  const engine::EngineSettings table = Options().settings();
  const engine::EngineSettings own;
  EXPECT_EQ(table.shm, own.shm);
  EXPECT_EQ(table.shm_eager_max, own.shm_eager_max);
  EXPECT_EQ(table.net_eager_max, own.net_eager_max);
  EXPECT_EQ(table.shm_ring_bytes, own.shm_ring_bytes);
  EXPECT_EQ(table.eager_credit, own.eager_credit);
  EXPECT_EQ(table.pull_window, own.pull_window);
  EXPECT_EQ(table.send_requests_max, own.send_requests_max);
  EXPECT_EQ(table.flow_window, own.flow_window);
  EXPECT_EQ(table.ack_delay, own.ack_delay);
  EXPECT_EQ(table.peer_timeout, own.peer_timeout);
  EXPECT_EQ(table.linger, own.linger);
  EXPECT_EQ(Options().packet_settings().ring_slots, os::PacketSettings{}.ring_slots);
  EXPECT_EQ(Options().packet_settings().rings, os::PacketSettings{}.rings);
  EXPECT_EQ(Options().packet_settings().qdisc_bypass, os::PacketSettings{}.qdisc_bypass);
}

TEST(Options, EveryRowIsInOrder) {
  std::set<std::string> names;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_LE(row.min, row.max) << row.name;
    EXPECT_NE(*row.help, '\0') << row.name;
    EXPECT_LT(help_text(row).size(), 512u) << row.name;
    // The default is a value like any other.
    Said said{{{row.name, row.fallback}}, {}};
    EXPECT_FALSE(said.refused()) << row.name;
  }
}

TEST(Options, ValuesTakeEffect) {
  Said said{{{"shm", "no"},
             {"shm_ring", "256k"},
             {"net_eager", "4000"},
             {"eager_credit", "3M"},
             {"window", "64"},
             {"ack_delay", "100"},
             {"peer_timeout", "500"},
             {"link", "UDP"},
             {"iface", "eth7"},
             {"rings", "0"},
             {"qdisc_bypass", "0"}},
            {}};
  const Options options = said.read();
  EXPECT_TRUE(said.errors.empty());
  const engine::EngineSettings settings = options.settings();
  EXPECT_FALSE(settings.shm);
  EXPECT_EQ(settings.shm_ring_bytes, 256u * 1024);
  EXPECT_EQ(settings.net_eager_max, 4000u);
  EXPECT_EQ(settings.eager_credit, 3u * 1024 * 1024);
  EXPECT_EQ(settings.flow_window, 64);
  EXPECT_EQ(settings.ack_delay, Duration(100us));
  EXPECT_EQ(settings.peer_timeout, Duration(500ms));
  EXPECT_EQ(options.text(Options::Name::link), "udp");
  EXPECT_EQ(options.text(Options::Name::iface), "eth7");
  EXPECT_EQ(options.packet_settings().rings, 0u);
  EXPECT_FALSE(options.packet_settings().qdisc_bypass);
}

TEST(Options, BothEndsOfARangeAreAllowedAndNothingBeyond) {
  for (const OptionRow& row : option_rows()) {
    if (row.kind != OptionKind::number && row.kind != OptionKind::size && row.kind != OptionKind::duration)
      continue;
    const auto refused = [&](std::uint64_t number) {
      return Said{{{row.name, std::to_string(number)}}, {}}.refused();
    };
    EXPECT_FALSE(refused(row.min)) << row.name;
    EXPECT_FALSE(refused(row.max)) << row.name;
    EXPECT_TRUE(refused(row.max + 1)) << row.name;
    if (row.min > 0) {
      EXPECT_TRUE(refused(row.min - 1)) << row.name;
    }
  }
}

TEST(Options, NonsenseIsRefused) {
  for (const char* value :
       {"abc", "-1", "+5", " 64", "64 ", "64x", "0x40", "64k", "99999999999999999999", "6.4"}) {
    EXPECT_TRUE((Said{{{"window", value}}, {}}.refused())) << value;
  }
  for (const char* value : {"k", "1g", "1kk", "1 m", "99999999999999999m", "17592186044416m"}) {
    EXPECT_TRUE((Said{{{"shm_ring", value}}, {}}.refused())) << value;
  }
  for (const char* value : {"2", "maybe", "y"}) EXPECT_TRUE((Said{{{"shm", value}}, {}}.refused())) << value;
  for (const char* value : {"tcp", "auto|udp", "pack", "udp "}) {
    EXPECT_TRUE((Said{{{"link", value}}, {}}.refused())) << value;
  }
  EXPECT_TRUE((Said{{{"iface", std::string(65, 'x')}}, {}}.refused()));
}

TEST(Options, EmptyMeansDefault) {
  Said said{{{"window", ""}, {"link", ""}, {"iface", ""}}, {}};
  const Options options = said.read();
  EXPECT_TRUE(said.errors.empty());
  EXPECT_EQ(options.settings().flow_window, engine::EngineSettings{}.flow_window);
  EXPECT_EQ(options.text(Options::Name::link), "auto");
}

TEST(Options, ARefusalNamesOptionValueAndRange) {
  Said said{{{"shm_ring", "12"}, {"link", "tcp"}}, {}};
  static_cast<void>(said.read());
  ASSERT_EQ(said.errors.size(), 2u);
  EXPECT_NE(said.errors[0].find("FI_CLUSTER_LINK=tcp"), std::string::npos) << said.errors[0];
  EXPECT_NE(said.errors[0].find("auto, packet, udp"), std::string::npos) << said.errors[0];
  EXPECT_NE(said.errors[1].find("FI_CLUSTER_SHM_RING=12"), std::string::npos) << said.errors[1];
  EXPECT_NE(said.errors[1].find("64k to 64m bytes"), std::string::npos) << said.errors[1];
}

TEST(Options, ALongValueMakesAShortLine) {
  Said said{{{"window", std::string(5000, '9')}}, {}};
  static_cast<void>(said.read());
  ASSERT_EQ(said.errors.size(), 1u);
  EXPECT_LT(said.errors[0].size(), 300u);
  said.values["window"] = "1\n2\x1b[31m";
  static_cast<void>(said.read());
  ASSERT_EQ(said.errors.size(), 1u);
  EXPECT_NE(said.errors[0].find("=1?2?[31m "), std::string::npos) << said.errors[0];
}

}  // namespace
}  // namespace cluster::provider

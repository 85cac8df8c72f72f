// Options: which values are allowed, the text of a refusal, and that the defaults in the table equal those of
// the settings they fill.
#include "provider/options.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace cluster::provider {
namespace {

struct FakeVariables {
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
  const transport::EngineSettings table = Options().settings();
  const transport::EngineSettings own;
  EXPECT_EQ(table.shm, own.shm);
  EXPECT_EQ(table.shm_eager_max, own.shm_eager_max);
  EXPECT_EQ(table.net_eager_max, own.net_eager_max);
  EXPECT_EQ(table.peer_timeout, own.peer_timeout);
  EXPECT_EQ(table.outage, own.outage);
  EXPECT_EQ(table.end_abandoned, own.end_abandoned);
  EXPECT_EQ(Options().packet_settings().rings, os::PacketSettings{}.rings);
  EXPECT_EQ(Options().packet_settings().ring_groups, os::PacketSettings{}.ring_groups);
  EXPECT_EQ(Options().packet_settings().qdisc_bypass, os::PacketSettings{}.qdisc_bypass);
}

TEST(Options, EveryRowIsValid) {
  std::set<std::string> names;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_LE(row.min, row.max) << row.name;
    EXPECT_NE(*row.help, '\0') << row.name;
    EXPECT_LT(help_text(row).size(), 512u) << row.name;
    // The default is a value like any other.
    FakeVariables environment{{{row.name, row.fallback}}, {}};
    EXPECT_FALSE(environment.refused()) << row.name;
  }
}

TEST(Options, ValuesTakeEffect) {
  FakeVariables environment{{{"shm", "no"},
                             {"shm_eager", "256k"},
                             {"net_eager", "4000"},
                             {"peer_timeout", "500"},
                             {"outage", "0"},
                             {"link", "UDP"},
                             {"iface", "eth7"},
                             {"ethertype", "yes"},
                             {"qdisc_bypass", "0"},
                             {"test_rings", "0"}},
                            {}};
  const Options options = environment.read();
  EXPECT_TRUE(environment.errors.empty());
  const transport::EngineSettings settings = options.settings();
  EXPECT_FALSE(settings.shm);
  EXPECT_EQ(settings.shm_eager_max, 256u * 1024);
  EXPECT_EQ(settings.net_eager_max, 4000u);
  EXPECT_EQ(settings.peer_timeout, Duration(500ms));
  EXPECT_EQ(settings.outage, Duration(0s));
  EXPECT_EQ(options.text(Options::Name::link), "udp");
  EXPECT_EQ(options.text(Options::Name::iface), "eth7");
  EXPECT_EQ(options.packet_settings().ethertype, true);
  EXPECT_FALSE(options.packet_settings().qdisc_bypass);
  EXPECT_EQ(options.packet_settings().rings, 0u);
  EXPECT_EQ(options.packet_settings().ring_groups, 1u);
}

TEST(Options, PortsAreAPortOrARange) {
  const auto read = [](const char* written) {
    FakeVariables environment{{{"ports", written}}, {}};
    const PortRange range = environment.read().ports();
    EXPECT_TRUE(environment.errors.empty()) << written;
    return std::pair{range.first, range.last};
  };
  EXPECT_EQ(read("40000-40063"), (std::pair<std::uint16_t, std::uint16_t>{40000, 40063}));
  EXPECT_EQ(read("1-65535"), (std::pair<std::uint16_t, std::uint16_t>{1, 65535}));
  EXPECT_EQ(read("9228"), (std::pair<std::uint16_t, std::uint16_t>{9228, 9228}));
  EXPECT_TRUE(Options().ports().any());
  for (const char* written : {"0-5", "5-4", "40000-65536", "40000-", "-40000", "a-b", "1-2-3", "1 - 2"})
    EXPECT_TRUE((FakeVariables{{{"ports", written}}, {}}.refused())) << written;
}

TEST(Options, BothEndsOfARangeAreAllowedAndNothingBeyond) {
  for (const OptionRow& row : option_rows()) {
    if (row.kind != OptionKind::number && row.kind != OptionKind::size && row.kind != OptionKind::duration)
      continue;
    const auto refused = [&](std::uint64_t number) {
      return FakeVariables{{{row.name, std::to_string(number)}}, {}}.refused();
    };
    EXPECT_FALSE(refused(row.min)) << row.name;
    EXPECT_FALSE(refused(row.max)) << row.name;
    EXPECT_TRUE(refused(row.max + 1)) << row.name;
    if (row.min > 0) {
      EXPECT_TRUE(refused(row.min - 1)) << row.name;
    }
  }
}

TEST(Options, MalformedValuesAreRefused) {
  for (const char* value :
       {"abc", "-1", "+500", " 640", "640 ", "640x", "0x400", "64k", "99999999999999999999", "6.4"}) {
    EXPECT_TRUE((FakeVariables{{{"peer_timeout", value}}, {}}.refused())) << value;
  }
  for (const char* value : {"k", "1g", "1kk", "1 m", "99999999999999999m", "17592186044416m"}) {
    EXPECT_TRUE((FakeVariables{{{"shm_eager", value}}, {}}.refused())) << value;
  }
  for (const char* value : {"2", "maybe", "y"})
    EXPECT_TRUE((FakeVariables{{{"shm", value}}, {}}.refused())) << value;
  for (const char* value : {"tcp", "auto|udp", "pack", "udp "}) {
    EXPECT_TRUE((FakeVariables{{{"link", value}}, {}}.refused())) << value;
  }
  EXPECT_TRUE((FakeVariables{{{"iface", std::string(65, 'x')}}, {}}.refused()));
}

TEST(Options, EmptyMeansDefault) {
  FakeVariables environment{{{"net_eager", ""}, {"link", ""}, {"iface", ""}, {"test_rings", ""}}, {}};
  const Options options = environment.read();
  EXPECT_TRUE(environment.errors.empty());
  EXPECT_EQ(options.settings().net_eager_max, transport::EngineSettings{}.net_eager_max);
  EXPECT_EQ(options.text(Options::Name::link), "auto");
}

TEST(Options, ARefusalNamesOptionValueAndRange) {
  FakeVariables environment{{{"peer_timeout", "12"}, {"link", "tcp"}}, {}};
  static_cast<void>(environment.read());
  ASSERT_EQ(environment.errors.size(), 2u);
  EXPECT_NE(environment.errors[0].find("FI_CLUSTER_LINK=tcp"), std::string::npos) << environment.errors[0];
  EXPECT_NE(environment.errors[0].find("auto, packet, udp"), std::string::npos) << environment.errors[0];
  EXPECT_NE(environment.errors[1].find("FI_CLUSTER_PEER_TIMEOUT=12"), std::string::npos)
      << environment.errors[1];
  EXPECT_NE(environment.errors[1].find("100 to 3600000 ms"), std::string::npos) << environment.errors[1];
}

TEST(Options, ALongValueMakesAShortLine) {
  FakeVariables environment{{{"peer_timeout", std::string(5000, '9')}}, {}};
  static_cast<void>(environment.read());
  ASSERT_EQ(environment.errors.size(), 1u);
  EXPECT_LT(environment.errors[0].size(), 300u);
  environment.values["peer_timeout"] = "1\n2\x1b[31m";
  static_cast<void>(environment.read());
  ASSERT_EQ(environment.errors.size(), 1u);
  EXPECT_NE(environment.errors[0].find("=1?2?[31m "), std::string::npos) << environment.errors[0];
}

TEST(UnknownOptions, AreNamedWithTheOptionThatIsSpelledLikeThem) {
  const char* const environment[] = {"HOME=/root", "FI_CLUSTER_LINK=udp", "FI_CLUSTER_PEER_TIMOUT=1",
                                     "FI_CLUSTER_COLOUR=red", nullptr};
  const std::vector<UnknownOption> unknown = unknown_options(environment);
  ASSERT_EQ(unknown.size(), 2u);
  EXPECT_EQ(unknown[0].name, "FI_CLUSTER_PEER_TIMOUT");
  EXPECT_EQ(unknown[0].line,
            "FI_CLUSTER_PEER_TIMOUT is set and has no effect: there is no such option (is "
            "FI_CLUSTER_PEER_TIMEOUT meant?)");
  EXPECT_EQ(
      unknown[1].line,
      "FI_CLUSTER_COLOUR is set and has no effect: there is no such option (\"cluster-info --host\" lists "
      "the options)");
  EXPECT_TRUE(unknown_options(nullptr).empty());
}

TEST(UnknownOptions, SpellingDistance) {
  EXPECT_EQ(spelling_distance("cluster", "cluster"), 0u);
  EXPECT_EQ(spelling_distance("clutser", "cluster"), 2u);
  EXPECT_EQ(spelling_distance("", "abc"), 3u);
  EXPECT_EQ(spelling_distance("abcd", "acd"), 1u);
}

}  // namespace
}  // namespace cluster::provider

// The records for cluster-info: every option with the origin of its value, and the setup and statistics of an
// endpoint under names that do not change.
#include "provider/endpoint_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

namespace cluster::provider {
namespace {

SocketAddress node(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 9228);
}

TEST(EndpointReport, EveryOptionHasTheOriginOfItsValue) {
  std::vector<std::string> errors;
  const Options options(
      [](const OptionRow& row) -> std::optional<std::string> {
        if (std::string(row.name) == "net_eager") return "4000";
        if (std::string(row.name) == "peer_timeout") return "";
        if (std::string(row.name) == "shm_eager") return "a few";
        return std::nullopt;
      },
      errors);
  Report report;
  report_options(options, report);
  ASSERT_EQ(report.size(), option_rows().size());
  std::map<std::string, Record> found;
  for (const Record& record : report) found.emplace(record["option"], record);
  EXPECT_EQ(found.at("FI_CLUSTER_NET_EAGER")["value"], "4000");
  EXPECT_EQ(found.at("FI_CLUSTER_NET_EAGER")["from"], "environment");
  EXPECT_EQ(found.at("FI_CLUSTER_PEER_TIMEOUT")["value"], "20000");
  EXPECT_EQ(found.at("FI_CLUSTER_PEER_TIMEOUT")["unit"], "ms");
  EXPECT_EQ(found.at("FI_CLUSTER_PEER_TIMEOUT")["from"], "default") << "an empty value counts as unset";
  EXPECT_EQ(found.at("FI_CLUSTER_SHM_EAGER")["from"], "default") << "a refused value is not in force";
  EXPECT_EQ(found.at("FI_CLUSTER_LINK")["allowed"], "auto, packet, udp, verbs");
}

TEST(EndpointReport, TheDeviceThatReads) {
  const EndpointSetup setup{node(1), {"eth0"}, "packet", "", 1472, true, "", false};
  engine::EndpointStats seen;
  Report report;
  report_endpoint(setup, seen, report);
  for (const Record& record : report) EXPECT_NE(record.kind(), "reader") << "no device is open";
  seen.devices = {{.name = "rxe0/1",
                   .queue_pairs = 3,
                   .queue_pairs_max = 256,
                   .hits = 10,
                   .misses = 4,
                   .dropped = 1,
                   .entries = 2,
                   .bytes = 5000,
                   .bytes_max = 1'000'000,
                   .keeps_nothing_because = {}}};
  report.clear();
  report_endpoint(setup, seen, report);
  const auto reader =
      std::ranges::find_if(report, [](const Record& record) { return record.kind() == "reader"; });
  ASSERT_NE(reader, report.end());
  const std::pair<const char*, const char*> facts[] = {{"device", "rxe0/1"},
                                                       {"queue_pairs", "3"},
                                                       {"queue_pairs_max", "256"},
                                                       {"hits", "10"},
                                                       {"misses", "4"},
                                                       {"dropped", "1"},
                                                       {"registrations", "2"},
                                                       {"registered_bytes", "5000"},
                                                       {"registered_bytes_max", "1000000"},
                                                       {"keeps_nothing_because", ""}};
  for (const auto& [name, value] : facts) EXPECT_EQ((*reader)[name], value) << name;
}

TEST(EndpointReport, AnEndpointAndItsPeers) {
  const EndpointSetup setup{node(1), {"eth0", "eth1"}, "packet", "", 1472, true, "", false};
  engine::EndpointStats seen;
  seen.since = Time(1s);
  seen.now = Time(3s);
  seen.counters.frames_sent = 7;
  engine::PeerStats far;
  far.name = node(2);
  far.carrier = "packet";
  far.carrier_reason = "no shared memory: no process on this node offers it at this address";
  far.footprint = 5000;
  far.flow = reliability::FlowStats{};
  far.flow->heard_at = Time(2s);
  far.flow->paths.resize(2);
  far.flow->paths[1] = {
      .link = 1, .to = node(9), .round_trip = 12us, .window = 40, .up = false, .relay = node(7)};
  engine::PeerStats near;
  near.name = node(1).with_port(1);
  near.carrier = "shm";
  near.rings = engine::PeerStats::Rings{.single_copy = true, .unread = false};
  near.lost = Status::ended;
  near.lost_at = Time(1s);
  far.flow->kernel_vouches = true;
  seen.peers = {far, near};
  seen.application_away = 4s;
  seen.messages.push_back({.peer = node(2), .length = 8, .tagged = true, .tag = 77});

  Report report;
  report_endpoint(setup, seen, report);
  ASSERT_EQ(report.size(), 7u);
  EXPECT_EQ(report[0].kind(), "endpoint");
  EXPECT_EQ(report[0]["interface"], "eth0");
  EXPECT_EQ(report[0]["open_ns"], "2000000000");
  EXPECT_EQ(report[0]["no_call_ns"], "4000000000");
  EXPECT_EQ(report[1].kind(), "counters");
  EXPECT_EQ(report[1]["frames_sent"], "7");
  EXPECT_EQ(report[2]["peer"], "10.0.0.2:9228");
  EXPECT_EQ(report[2]["silent_ns"], "1000000000");
  EXPECT_EQ(report[2]["single_copy"], "");
  EXPECT_EQ(report[3].kind(), "rail");
  EXPECT_EQ(report[3]["rtt_ns"], "") << "not measured is not zero";
  EXPECT_EQ(report[4]["interface"], "eth1");
  EXPECT_EQ(report[4]["rtt_ns"], "12000");
  EXPECT_EQ(report[4]["up"], "no");
  EXPECT_EQ(report[3]["relay"], "");
  EXPECT_EQ(report[4]["relay"], "10.0.0.7:9228");
  EXPECT_EQ(report[5]["path"], "shm");
  EXPECT_EQ(report[5]["single_copy"], "yes");
  EXPECT_EQ(report[2]["kernel_vouches"], "yes");
  EXPECT_EQ(report[2]["lost"], "");
  EXPECT_EQ(report[5]["lost"], "peer's process has ended");
  EXPECT_EQ(report[5]["lost_ns"], "2000000000");
  EXPECT_EQ(report[6].kind(), "message");
  EXPECT_EQ(report[6]["tag"], "77");
  EXPECT_TRUE(read_report(write_report(report)));
}

}  // namespace
}  // namespace cluster::provider

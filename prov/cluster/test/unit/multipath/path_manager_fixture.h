// The paths of a flow without a flow: three rails towards a peer with three addresses; the test says what was
// sent and what was acknowledged.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "multipath/path_manager.h"
#include "support/fake_environment.h"

namespace cluster::multipath {

inline constexpr int kOurs = 1;
inline constexpr int kPeer = 2;

inline SocketAddress address(int network, int node) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, static_cast<std::byte>(network),
                          static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 5000);
}

inline link::Path way(int network, std::uint8_t link) { return {address(network, kPeer), {}, false, link}; }

struct PathManagerTest : testing::Test {
  /// All further paths, validated.
  void validate_both() {
    paths.join(addresses);
    for (const int network : {1, 2})
      paths.on_response(Time{}, Time{}, way(network, static_cast<std::uint8_t>(network)), true);
    ASSERT_EQ(paths.size(), 3u);
    ASSERT_TRUE(validated(1) && validated(2));
  }
  /// About the path in that network.
  bool path_error(Duration at, int network, Status status = Status::unreachable) {
    const auto link = static_cast<std::uint8_t>(network);
    return paths.on_path_error(Time(at), {address(network, kPeer), status, link});
  }

  void send(Duration at, std::size_t path) {
    const TransmissionNumber transmission{static_cast<std::uint32_t>(sent.size() + 1)};
    const Sequence sequence{static_cast<std::uint32_t>(sent.size())};
    sent.push_back({path, Time(at), true});
    paths[path].recovery.on_sent(Time(at), sequence, transmission);
  }
  /// An acknowledgement of these frames, of which the last arrived last.
  void acknowledge(Duration at, const std::vector<std::uint32_t>& frames, Duration delay = 0ns) {
    for (const std::uint32_t frame : frames) {
      Sent& one = sent[frame];
      if (!one.in_flight) continue;
      one.in_flight = false;
      paths.on_frames_acked(one.path, {{frame}, {frame + 1}, one.at, true});
    }
    const std::uint32_t last = frames.back();
    paths.on_ack(Time(at), {.largest_acked = {last + 1},
                            .known_end = {last + 1},
                            .next = {static_cast<std::uint32_t>(sent.size() + 1)},
                            .arrived = Time(at),
                            .delay = delay});
  }
  std::vector<Sequence> detect(Duration at) {
    std::vector<Sequence> lost;
    paths.detect_losses(Time(at), lost);
    return lost;
  }
  std::optional<std::size_t> due(Time now) const {
    const auto challenge = paths.challenge_due(now);
    return challenge ? std::optional(challenge->path) : std::nullopt;
  }
  bool validated(std::size_t path) const { return paths[path].validator.validated(); }

  test::FakeLog log;
  const std::vector<multipath::Rail> own{
      {address(0, kOurs), 24, "eth0"}, {address(1, kOurs), 24, "eth1"}, {address(2, kOurs), 24, "eth2"}};
  const std::vector<SocketAddress> addresses{address(0, kPeer), address(1, kPeer), address(2, kPeer)};
  PathManager paths{own, way(0, 0), 64, log};
  struct Sent {
    std::size_t path;
    Time at;
    bool in_flight;
  };
  std::vector<Sent> sent;
};

}  // namespace cluster::multipath

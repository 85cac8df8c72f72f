// What every link promises, asked of each kind over loopback and, as root, between two hosts.
#include "link/link.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/link_station.h"
#include "conformance/two_hosts.h"
#include "os/keep_alive_responder.h"
#include "os/packet_link.h"
#include "os/packet_ring.h"
#include "os/udp_link.h"
#include "os/verbs_link.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::test {
namespace {

using Family = SocketAddress::Family;

enum class Kind { udp, packet, packet_without_offload, verbs };

struct Case {
  const char* name;
  bool two_hosts;
  Kind kinds[2];
  Family family;
  bool simple_cards = false;  ///< that take no super-frames
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LinkConformance : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().two_hosts) {
      std::string reason;
      hosts_ = TwoHosts::make(reason);
      if (!hosts_) GTEST_SKIP() << reason;
      for (int host = 0; host < 2 && GetParam().simple_cards; ++host) {
        if (!hosts_->forbid_segmentation(host)) GTEST_SKIP() << "the cable's features cannot be changed";
      }
    }
    open(0, left, GetParam().kinds[0]);
    open(1, right, GetParam().kinds[1]);
    if (!left.link || !right.link) GTEST_SKIP() << left.world.log.text() << right.world.log.text();
    to_right.to = right.name();
    to_left.to = left.name();
  }

  SocketAddress address(int host) const {
    return hosts_ ? hosts_->address(host, GetParam().family) : loopback(GetParam().family);
  }

  void on(int host, const std::function<void()>& action) const {
    hosts_ ? hosts_->on(host, action) : action();
  }

  void open(int host, Station& station, Kind kind) {
    on(host, [&] {
      int error = 0;
      station.port = os::UdpPort::open(address(host), error);
      if (!station.port) station.world.log.warn("no port: %s", std::strerror(error));
    });
    if (!station.port) return;
    if (kind == Kind::udp) {
      station.link = os::open_udp_link(station.port, TwoHosts::kMtu, station.world.environment);
      return;
    }
    const os::Interface interface = hosts_->interface(host);
    if (kind == Kind::verbs) return open_verbs(host, interface, station);
    on(host, [&] {
      std::string reason;
      os::PacketSettings settings;
      settings.offload = kind == Kind::packet;
      station.link =
          os::open_packet_link(station.port, interface, settings, station.world.environment, reason);
      if (!station.link) station.world.log.warn("%s", reason.c_str());
    });
  }

  /// Over a library that stands in for libibverbs. It makes a queue pair of a UDP socket.
  void open_verbs(int host, const os::Interface& interface, Station& station) {
    on(host, [&] {
      std::string reason;
      const auto port = os::find_verbs_port(FAKE_IBVERBS, interface, address(host), reason);
      if (port) {
        os::OpenedVerbs opened = os::open_verbs_link(FAKE_IBVERBS, *port, station.world.environment, reason);
        station.link = std::move(opened.link);
        station.queue_pair = opened.address;
      }
      if (!station.link) station.world.log.warn("%s", reason.c_str());
    });
  }

  std::shared_ptr<void> responder_of(int host, Station& station) {
    std::shared_ptr<void> responder;
    on(host, [&] { responder = os::start_keep_alive_responder(station.port, station.world.log); });
    EXPECT_TRUE(responder) << station.world.log.text();
    return responder;
  }

  bool packet(int side) const {
    return GetParam().kinds[side] == Kind::packet || GetParam().kinds[side] == Kind::packet_without_offload;
  }
  /// Queue pairs have no super-frames, no ICMP and no keep-alive responder.
  bool verbs() const { return GetParam().kinds[0] == Kind::verbs; }

  /// As the components above do: keeps the path back that frames showed.
  void learn_paths() {
    left.send(to_right, {numbered(1000, 64)});
    const std::vector<Numbered> at_right = right.receive(1);
    ASSERT_EQ(at_right.size(), 1U);
    to_left = at_right[0].from;
    right.send(to_left, {numbered(1001, 64)});
    const std::vector<Numbered> at_left = left.receive(1);
    ASSERT_EQ(at_left.size(), 1U);
    to_right = at_left[0].from;
    EXPECT_EQ(to_left.mac_known, packet(1));
    EXPECT_EQ(to_right.mac_known, packet(0));
  }

  static void expect_sequence(const std::vector<Numbered>& frames, std::uint32_t first, std::size_t count) {
    ASSERT_EQ(frames.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_TRUE(frames[i].intact) << i;
      EXPECT_EQ(frames[i].number, first + i);
    }
  }

  std::unique_ptr<TwoHosts> hosts_;
  Station left;
  Station right;
  link::Path to_right;
  link::Path to_left;
};

TEST_P(LinkConformance, CarriesAFrameAndShowsThePathBack) {
  left.send(to_right, {numbered(7, 100)});
  const std::vector<Numbered> there = right.receive(1);
  expect_sequence(there, 7, 1);
  EXPECT_EQ(there[0].size, 100U);
  EXPECT_EQ(there[0].from.to, left.name());
  EXPECT_EQ(there[0].from.mac_known, packet(1));

  right.send(there[0].from, {numbered(8, kNumberedMin)});
  const std::vector<Numbered> back = left.receive(1);
  expect_sequence(back, 8, 1);
  EXPECT_EQ(back[0].size, kNumberedMin) << "padding of short Ethernet frames must not be handed up";
  EXPECT_EQ(back[0].from.to, right.name());
}

TEST_P(LinkConformance, KeepsBurstsWholeAndInOrder) {
  learn_paths();
  for (const std::size_t size : {std::size_t{64}, std::size_t{1000}, left.link->frame_max()}) {
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t i = 0; i < 40; ++i) frames.push_back(numbered(i, size));
    frames.push_back(numbered(40, size / 2));
    left.send(to_right, frames);
    expect_sequence(right.receive(frames.size()), 0, frames.size());
    right.send(to_left, frames);
    expect_sequence(left.receive(frames.size()), 0, frames.size());
  }
}

TEST_P(LinkConformance, TakesAnyMixtureOfSizes) {
  learn_paths();
  const std::size_t longest = std::min<std::size_t>(1400, left.link->frame_max() - kNumberedMin);
  std::vector<std::vector<std::byte>> frames;
  for (std::uint32_t i = 0; i < 32; ++i) frames.push_back(numbered(i, kNumberedMin + (i * i * 37) % longest));
  left.send(to_right, frames);
  expect_sequence(right.receive(frames.size()), 0, frames.size());
}

TEST_P(LinkConformance, SaysWhereFramesThatCameTogetherEnd) {
  if (verbs()) GTEST_SKIP() << "each frame comes alone";
  learn_paths();
  constexpr std::size_t kSize = 1200;
  constexpr std::size_t kFrames = 20;
  std::vector<std::vector<std::byte>> frames;
  for (std::uint32_t i = 0; i < kFrames; ++i)
    frames.push_back(numbered(i, i + 1 < kFrames ? kSize : kSize / 2));
  left.send(to_right, frames);
  const std::vector<Numbered> arrived = right.receive(kFrames);
  expect_sequence(arrived, 0, kFrames);
  std::size_t joined = 0;
  for (const Numbered& frame : arrived) {
    joined += frame.joined ? 1 : 0;
    const bool can_say = !packet(1) || os::rings_know_segments();
    EXPECT_EQ(frame.segment, frame.joined && can_say ? kSize : 0);
  }
  const bool cut_before = GetParam().simple_cards || GetParam().kinds[0] == Kind::packet_without_offload;
  EXPECT_TRUE(joined == kFrames || cut_before) << joined;
  right.send(to_left, {numbered(7, kSize)});
  const std::vector<Numbered> alone = left.receive(1);
  expect_sequence(alone, 7, 1);
  EXPECT_EQ(alone[0].segment, 0U);
}

TEST_P(LinkConformance, FrameMaxFollowsTheMtu) {
  if (verbs()) GTEST_SKIP() << "the device decides";
  const std::size_t headers = GetParam().family == Family::v4 ? 28 : 48;
  EXPECT_EQ(left.link->frame_max(), TwoHosts::kMtu - headers);
}

TEST_P(LinkConformance, DropsAndCountsWhatIsTooLong) {
  if (!GetParam().two_hosts) GTEST_SKIP() << "loopback takes longer frames";
  EXPECT_TRUE(!verbs() || left.link->frame_max() == 1024);
  learn_paths();
  const std::size_t too_long = left.link->frame_max() + 8;
  EXPECT_EQ(left.send_once(to_right, {numbered(1, too_long)}), 1U);
  EXPECT_EQ(left.world.counters.link_too_long, 1U);
  EXPECT_EQ(left.send_once(to_right, {numbered(1, too_long), numbered(2, too_long)}), 2U);
  EXPECT_EQ(left.world.counters.link_too_long, 3U);
  left.send(to_right, {numbered(3, 80), numbered(4, 80)});
  expect_sequence(right.receive(2), 3, 2);
  EXPECT_EQ(left.world.counters.link_offload_refused, GetParam().simple_cards ? 1U : 0U)
      << "the offload is not to blame";
}

/// As if they had been lost on the way: the link is not full for as long as its cable is cut.
TEST_P(LinkConformance, TakesFramesThatNoCableCarries) {
  if (!GetParam().two_hosts) GTEST_SKIP() << "loopback has no cable";
  learn_paths();
  const auto burst = [](std::uint32_t first, std::size_t size) {
    return std::vector{numbered(first, size), numbered(first + 1, size), numbered(first + 2, size)};
  };
  ASSERT_TRUE(hosts_->plug(1, false));
  const auto takes_all = [&] { return left.send_once(to_right, burst(1, 200)) == 3; };
  EXPECT_TRUE(eventually(takes_all)) << "a link whose cable is cut says that it is full";
  EXPECT_TRUE(takes_all());
  ASSERT_TRUE(hosts_->plug(1, true));
  const auto arrives = [&] {
    left.send_once(to_right, {numbered(9, 64)});
    return !right.poll().empty();
  };
  EXPECT_TRUE(eventually(arrives)) << "nothing passes though the cable is whole again";
  if (GetParam().simple_cards || GetParam().kinds[0] == Kind::packet_without_offload || verbs()) return;
  const auto arrives_together = [&] {
    left.send_once(to_right, burst(20, 200));
    return std::ranges::any_of(right.poll(), [](const Numbered& frame) { return frame.joined; });
  };
  EXPECT_TRUE(eventually(arrives_together)) << "the offload is not to blame";
}

TEST_P(LinkConformance, LosesButNeverCorruptsFramesThatAreNotRead) {
  learn_paths();
  constexpr std::uint32_t kFrames = 40000;
  for (std::uint32_t i = 0; i < kFrames; i += 8) {
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t j = 0; j < 8; ++j) frames.push_back(numbered(i + j, 900));
    left.send(to_right, frames);
  }
  std::uint32_t expected = 0;
  std::size_t count = 0;
  for (std::vector<Numbered> frames = right.poll(); !frames.empty(); frames = right.poll()) {
    for (const Numbered& frame : frames) {
      ASSERT_TRUE(frame.intact);
      ASSERT_GE(frame.number, expected);
      expected = frame.number + 1;
      ++count;
    }
  }
  EXPECT_GT(count, 30U);
  EXPECT_LT(count, kFrames) << "the test did not overrun the receiver";
  left.send(to_right, {numbered(1, 64)});
  expect_sequence(right.receive(1), 1, 1);
  EXPECT_EQ(right.world.counters.link_ring_full > 0, packet(1)) << "the first frame after a loss reports it";
}

TEST_P(LinkConformance, ReportsPortUnreachableWhenThePeerIsGone) {
  if (verbs()) GTEST_SKIP() << "a network of queue pairs does not say";
  learn_paths();
  const SocketAddress gone = right.name();
  right.link.reset();
  right.port.reset();
  left.send(to_right, {numbered(1, 64)});
  std::vector<link::PathError> path_errors = left.await_path_error();
  ASSERT_FALSE(path_errors.empty());
  EXPECT_EQ(path_errors[0].peer, gone);
  EXPECT_EQ(path_errors[0].status, Status::refused);
  EXPECT_TRUE(std::ranges::equal(path_errors[0].quote(), numbered(1, 64)))
      << "the frame, which one that is forged cannot quote";
}

TEST_P(LinkConformance, SendsOnAfterAPathError) {
  if (verbs()) GTEST_SKIP() << "a network of queue pairs does not say";
  const std::shared_ptr<os::UdpPort> port = right.port;
  int error = 0;
  link::Path closed_port;
  on(1, [&] {
    const auto closed = os::UdpPort::open(address(1), error);
    closed_port.to = closed->name();
  });
  left.send(closed_port, {numbered(1, 64)});
  left.await_path_error();
  left.send(closed_port, {numbered(2, 64)});
  left.send(to_right, {numbered(3, 64)});
  expect_sequence(right.receive(1), 3, 1);
}

TEST_P(LinkConformance, ReachesAPeerOnTheSameHost) {
  if (verbs()) GTEST_SKIP() << "paths between queue pairs lead to other hosts only";
  Station neighbour;
  open(1, neighbour, Kind::udp);
  ASSERT_TRUE(neighbour.link);
  link::Path to_neighbour;
  to_neighbour.to = neighbour.name();
  right.send(to_neighbour, {numbered(1, 64), numbered(2, 64), numbered(3, 30)});
  const std::vector<Numbered> there = neighbour.receive(3);
  expect_sequence(there, 1, 3);
  EXPECT_EQ(there[0].from.to, right.name());
  neighbour.send(there[0].from, {numbered(4, 64)});
  const std::vector<Numbered> back = right.receive(1);
  expect_sequence(back, 4, 1);
  EXPECT_FALSE(back[0].from.mac_known);
}

TEST_P(LinkConformance, FramesFromThisHostArriveWhileTheWireIsBusy) {
  if (verbs()) GTEST_SKIP() << "paths between queue pairs lead to other hosts only";
  learn_paths();
  Station neighbour;
  open(1, neighbour, Kind::udp);
  link::Path path = {};
  path.to = right.name();
  // Let the link forget that its socket had traffic once.
  for (int i = 0; i < 2000; ++i) right.poll();
  neighbour.send(path, {numbered(99, 64)});
  const bool heard = eventually([&] {
    left.send(to_right, {numbered(1, 64)});
    for (const Numbered& frame : right.poll()) {
      if (frame.number == 99) return true;
    }
    return false;
  });
  EXPECT_TRUE(heard);
}

/// A process that seldom gets a processor polls seldom. Frames with which sessions begin wait in the socket.
TEST_P(LinkConformance, FewPollsTakeAllFramesThatWaitInTheSocket) {
  if (verbs()) GTEST_SKIP() << "a queue pair has no socket";
  constexpr std::uint32_t kWaiting = 80;
  Station neighbour;
  open(1, neighbour, Kind::udp);
  link::Path path = {};
  path.to = right.name();
  for (std::uint32_t i = 0; i < kWaiting; ++i) neighbour.send(path, {numbered(i, 64)});
  std::vector<Numbered> arrived;
  for (int i = 0; i < 12; ++i) {
    const std::vector<Numbered> more = right.poll();
    arrived.insert(arrived.end(), more.begin(), more.end());
  }
  expect_sequence(arrived, 0, kWaiting);
}

TEST_P(LinkConformance, KeepAliveResponderAnswersWhileTheLinkIsNotRead) {
  if (verbs()) GTEST_SKIP() << "keep-alives are for the UDP port";
  learn_paths();
  const std::shared_ptr<void> responder = responder_of(1, right);
  for (const std::uint32_t nonce : {17U, 18U}) {
    const wire::ControlFrame keep_alive = wire::ControlFrame::keep_alive(nonce, 0);
    link::OutFrame out;
    out.path = &to_right;
    out.add(keep_alive.bytes());
    ASSERT_EQ(left.link->send_burst({&out, 1}), 1U);
    wire::FrameView answer;
    ASSERT_TRUE(eventually([&] {
      link::InFrame in;
      return left.link->receive_burst({&in, 1}) == 1 && wire::admit(in.bytes, answer) == wire::Refusal::none;
    }));
    EXPECT_EQ(answer.kind, wire::FrameKind::alive);
    EXPECT_EQ(answer.sequence.value, nonce);
  }
}

TEST_P(LinkConformance, KeepAliveResponderLeavesDataAndPathErrorsAlone) {
  if (verbs()) GTEST_SKIP() << "keep-alives are for the UDP port";
  const std::shared_ptr<void> left_responder = responder_of(0, left);
  const std::shared_ptr<void> right_responder = responder_of(1, right);
  learn_paths();
  // From many ports, so that a distribution by hash would show.
  for (std::uint32_t i = 0; i < 20; ++i) {
    Station other;
    open(0, other, Kind::udp);
    link::Path path;
    path.to = right.name();
    other.send(path, {numbered(i, 200)});
    expect_sequence(right.receive(1), i, 1);
    std::vector<std::vector<std::byte>> burst(10, numbered(i, 200));
    other.send(path, burst);
    EXPECT_EQ(right.receive(burst.size()).size(), burst.size());
  }
  for (int i = 0; i < 5; ++i) {  // the kernel sends six in a row at most, then one each second
    int error = 0;
    link::Path closed_port;
    on(1, [&] { closed_port.to = os::UdpPort::open(address(1), error)->name(); });
    left.send(closed_port, {numbered(1, 64)});
    const std::vector<link::PathError> path_errors = left.await_path_error();
    ASSERT_FALSE(path_errors.empty()) << "lost in the keep-alive responder's socket";
    EXPECT_EQ(path_errors[0].peer, closed_port.to);
  }
}

constexpr Case kCases[] = {
    {"udp_loopback_v4", false, {Kind::udp, Kind::udp}, Family::v4},
    {"udp_loopback_v6", false, {Kind::udp, Kind::udp}, Family::v6},
    {"udp_udp_v4", true, {Kind::udp, Kind::udp}, Family::v4},
    {"packet_packet_v4", true, {Kind::packet, Kind::packet}, Family::v4},
    {"packet_packet_v6", true, {Kind::packet, Kind::packet}, Family::v6},
    {"udp_packet_v4", true, {Kind::udp, Kind::packet}, Family::v4},
    {"packet_udp_v4", true, {Kind::packet, Kind::udp}, Family::v4},
    {"udp_packet_v6", true, {Kind::udp, Kind::packet}, Family::v6},
    {"packet_udp_v6", true, {Kind::packet, Kind::udp}, Family::v6},
    {"packet_without_offload_v4", true, {Kind::packet_without_offload, Kind::packet}, Family::v4},
    {"packet_without_offload_v6", true, {Kind::packet_without_offload, Kind::udp}, Family::v6},
    {"packet_simple_cards_v4", true, {Kind::packet, Kind::packet}, Family::v4, true},
    {"verbs_verbs_v4", true, {Kind::verbs, Kind::verbs}, Family::v4},
    {"packet_simple_cards_v6", true, {Kind::packet, Kind::packet}, Family::v6, true},
};

INSTANTIATE_TEST_SUITE_P(Links, LinkConformance, ::testing::ValuesIn(kCases),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace cluster::test

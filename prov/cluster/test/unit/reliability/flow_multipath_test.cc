// Two flows with two rails between them: both paths carry frames, and the loss of either is survived.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "multipath/link_bundle.h"
#include "reliability/flow.h"
#include "reliability/frame_body.h"
#include "support/fake_network.h"
#include "support/flow_pair.h"
#include "wire/control.h"

namespace cluster::reliability {
namespace {

using test::FakeLink;
using test::FakeNetwork;

constexpr std::size_t kRails = 2;
constexpr std::size_t kFrame = 1000;  // fits before the peer is known

SocketAddress address(std::size_t rail, std::size_t node) {
  const std::byte ip[4] = {std::byte{10}, std::byte{0}, static_cast<std::byte>(rail),
                           static_cast<std::byte>(node)};
  return SocketAddress::v4(ip, 5000);
}

std::size_t rail_of(const SocketAddress& address) { return std::to_integer<std::size_t>(address.ip()[2]); }

class End {
 public:
  End(FakeNetwork& network, std::size_t node, std::size_t peer) {
    std::vector<std::unique_ptr<link::Link>> links;
    for (std::size_t i = 0; i < kRails; ++i) {
      rails_.push_back({address(i, node), 24, "rail" + std::to_string(i)});
      links.push_back(std::make_unique<FakeLink>(network, address(i, node)));
    }
    bundle_ = std::make_unique<multipath::LinkBundle>(std::move(links));
    const Identity identity{address(0, node), 1, static_cast<std::uint32_t>(1000 + node), 1'000'000 + node,
                            rails_};
    flow_ = std::make_unique<Flow>(FlowSettings{}, identity, link::Path{address(0, peer), {}, false, 0}, log,
                                   counters, bodies_, burst_, random_);
  }

  void turn(Time now) {
    std::array<link::InFrame, link::kBurstMax> frames;
    for (std::size_t count = bundle_->receive_burst(frames); count > 0;
         count = bundle_->receive_burst(frames)) {
      for (std::size_t i = 0; i < count; ++i) take(now, frames[i]);
    }
    if (flow_->deadline() <= now) flow_->on_timer(now);
    while (to_send > 0 && post()) --to_send;
    std::vector<carrier::Token> tokens;
    flow_->take_acked(tokens);
    acked += tokens.size();
    flow_->transmit(now, *bundle_);
  }
  Flow& flow() { return *flow_; }
  std::size_t rails_up() const {
    const std::vector<multipath::PathStats> rails = flow_->stats().paths;
    const auto count =
        std::count_if(rails.begin(), rails.end(), [](const multipath::PathStats& rail) { return rail.up; });
    return static_cast<std::size_t>(count);
  }

  test::FakeLog log;
  Counters counters;
  std::size_t to_send = 0;
  std::size_t acked = 0;
  std::size_t received = 0;

 private:
  bool post() {
    wire::Segment segment;
    segment.kind = wire::SegmentKind::bulk;
    segment.length = kFrame;
    const ConstBytes slice(payload_);
    return flow_->queue().post(segment, {{&slice, 1}, 0, kFrame}, carrier::PayloadMode::reference, ++token_);
  }
  void take(Time now, const link::InFrame& frame) {
    wire::FrameView view;
    ASSERT_EQ(wire::admit(frame.bytes, view), wire::Refusal::none);
    using wire::FrameKind;
    if (view.kind == FrameKind::keep_alive) return answer(wire::ControlFrame::alive(view), frame.from);
    if (view.kind == FrameKind::path_challenge)
      return answer(wire::ControlFrame::path_response(view), frame.from);
    if (view.kind == FrameKind::alive || view.kind == FrameKind::path_response) {
      EXPECT_TRUE(flow_->on_alive(now, view, frame.from));
      return;
    }
    if (view.session == 0) return flow_->answer_opening(view, link::without_mac(frame.from), *bundle_);
    flow_->receive(now, view, frame.from);
    ConstBytes segments;
    while (flow_->receiver().next(segments)) ++received;
  }
  /// As keep-alive responder and engine answer.
  void answer(const wire::ControlFrame& alive, const link::Path& from) {
    link::OutFrame out;
    out.path = &from;
    out.add(alive.bytes());
    bundle_->send_burst({&out, 1});
  }

  std::vector<multipath::Rail> rails_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(kFrame);
  std::unique_ptr<multipath::LinkBundle> bundle_;
  test::FakeRandom random_;
  BodyPool bodies_{1472};
  Burst burst_;
  std::unique_ptr<Flow> flow_;
  carrier::Token token_ = 0;
};

struct FlowMultipath : testing::Test {
  FlowMultipath() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      const std::size_t rail = rail_of(packet.from);
      if (rail != rail_of(to) || cut[rail]) return true;
      if (packet.from == address(rail, 1)) ++carried[rail];
      return false;
    };
  }
  /// Runs until the receiver has everything; returns how long it took.
  Duration carry(std::size_t frames) {
    const Time begin = clock.now();
    a.to_send += frames;
    sent += frames;
    while (a.acked < sent && clock.now() < begin + 10s) {
      a.turn(clock.now());
      b.turn(clock.now());
      clock.advance(1us);
    }
    EXPECT_EQ(a.acked, sent);
    EXPECT_EQ(a.flow().status(), Status::ok);
    return clock.now() - begin;
  }

  /// What leaves in one turn of the sender, by rail.
  std::array<std::size_t, kRails> send_in_one_turn(std::size_t frames) {
    carried = {};
    a.to_send += frames;
    sent += frames;
    a.turn(clock.now());
    return carried;
  }

  test::FakeClock clock;
  FakeNetwork network{clock, 1};
  std::size_t sent = 0;
  std::size_t b_sends = 0;
  std::array<bool, kRails> cut{};
  std::array<std::size_t, kRails> carried{};
  End a{network, 1, 2};
  End b{network, 2, 1};
};

TEST_F(FlowMultipath, BothCarryAndNothingIsRetransmitted) {
  carry(4000);
  EXPECT_EQ(a.rails_up(), kRails);
  EXPECT_GT(carried[0], 1000u);
  EXPECT_GT(carried[1], 1000u);
  EXPECT_EQ(a.counters.frames_retransmitted, 0u);
}

TEST_F(FlowMultipath, ACutRailCostsAShortDipAndReturns) {
  carry(2000);
  for (const std::size_t rail : {0u, 1u}) {
    cut[rail] = true;
    EXPECT_LT(carry(2000), 100ms);
    EXPECT_EQ(a.rails_up(), 1u);
    cut[rail] = false;
    for (int i = 0; i < 3 && a.rails_up() < kRails; ++i) {
      clock.advance(500ms);
      carry(200);
    }
    EXPECT_EQ(a.rails_up(), kRails) << "rail " << rail;
  }
}

TEST_F(FlowMultipath, WhatALinkDoesNotTakeLeavesByTheOtherInTheSameTurn) {
  carry(500);
  ASSERT_EQ(a.rails_up(), kRails);
  for (const std::size_t full : {0u, 1u}) {
    network.link_full = [full](const SocketAddress& from) { return from == address(full, 1); };
    EXPECT_EQ(send_in_one_turn(8)[1 - full], 8u) << full;
    network.link_full = nullptr;
    carry(100);
  }
  EXPECT_EQ(a.counters.frames_retransmitted, 0u);
  EXPECT_EQ(a.rails_up(), kRails);
}

/// An interface whose queue stays full: acknowledgements and retransmissions take the other.
TEST_F(FlowMultipath, ALinkThatTakesNothingHoldsBackNoOther) {
  carry(2000);
  for (const std::size_t node : {1u, 2u}) {
    for (const std::size_t full : {0u, 1u}) {
      network.link_full = [=](const SocketAddress& from) { return from == address(full, node); };
      b.to_send += 100;
      b_sends += 100;
      carry(2000);
      for (const Time limit = clock.now() + 200ms; clock.now() < limit && b.acked != b_sends;
           clock.advance(1us)) {
        a.turn(clock.now());
        b.turn(clock.now());
      }
      EXPECT_EQ(b.acked, b_sends) << "node " << node << ", rail " << full;
    }
  }
}

/// Data waits for the full link, since the window of the other is used up. An acknowledgement needs no
/// window.
TEST_F(FlowMultipath, AnAcknowledgementDoesNotWaitForTheOtherLink) {
  carry(2000);
  network.link_full = [](const SocketAddress& from) { return from == address(1, 2); };
  network.drop = [](const FakeNetwork::Packet& packet, const SocketAddress&) {
    return packet.from == address(0, 2);
  };
  b.to_send = 1000;
  const auto pass = [this] {
    for (const Time limit = clock.now() + 10ms; clock.now() < limit; clock.advance(1us)) {
      a.turn(clock.now());
      b.turn(clock.now());
    }
  };
  pass();
  EXPECT_GT(b.to_send, 0u);
  const std::uint64_t before = b.counters.acks_sent;
  a.to_send = 10;
  pass();
  EXPECT_GT(b.counters.acks_sent, before);
}

TEST_F(FlowMultipath, NothingIsLostWhileBothLinksAreFull) {
  carry(500);
  network.link_full = [](const SocketAddress&) { return true; };
  const auto carried_when_full = send_in_one_turn(8);
  EXPECT_EQ(carried_when_full[0] + carried_when_full[1], 0u);
  network.link_full = nullptr;
  carry(100);
  EXPECT_EQ(a.counters.frames_retransmitted, 0u);
}

TEST_F(FlowMultipath, APathErrorCostsAPathAndNotThePeer) {
  carry(2000);
  ASSERT_EQ(a.rails_up(), kRails);
  for (const Status status : {Status::refused, Status::unreachable}) {
    a.flow().on_path_error(clock.now(), {address(1, 2), status, 1});
    EXPECT_EQ(a.rails_up(), kRails) << "any host can say so: it quotes nothing";
    a.flow().on_path_error(clock.now(), test::path_error_about(a.flow(), address(1, 2), status, 1));
    EXPECT_EQ(a.rails_up(), 1u);
    EXPECT_EQ(a.flow().status(), Status::ok);
    for (int i = 0; i < 10 && a.rails_up() < kRails; ++i) carry(200);
    EXPECT_EQ(a.rails_up(), kRails) << "it answers, so it is taken again";
  }
}

TEST_F(FlowMultipath, APathThatNeverReachesThePeerIsLeftOutWithOneLineInTheLog) {
  cut[1] = true;
  for (int i = 0; i < 20; ++i) {
    carry(50);
    clock.advance(300ms);
  }
  EXPECT_EQ(a.rails_up(), 1u);
  const auto says = [](const std::string& line) { return line.find("does not reach") != std::string::npos; };
  EXPECT_EQ(std::count_if(a.log.lines.begin(), a.log.lines.end(), says), 1);
}

}  // namespace
}  // namespace cluster::reliability

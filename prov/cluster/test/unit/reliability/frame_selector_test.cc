// Which frame leaves next, and which frames a full link returns.
#include <gtest/gtest.h>

#include "reliability/flow_status.h"
#include "reliability/frame_sender.h"
#include "support/fake_environment.h"

namespace cluster::reliability {
namespace {

struct FrameSelectorTest : testing::Test {
  FrameSelectorTest() {
    for (std::uint32_t i = 0; i < 4; ++i) {
      queue.push_padding(100);
      send(nth(i));
    }
  }

  Sequence nth(std::uint32_t frame) const { return first_sequence(handshake.session()) + frame; }
  void send(Sequence s) {
    ++transmission;
    queue.window().on_sent(s, transmission, Time(1ms));
    paths[0].recovery.on_sent(Time(1ms), s, transmission);
  }
  /// Fills the congestion window.
  void fill_path() {
    while (paths[0].recovery.has_window()) {
      ++transmission;
      paths[0].recovery.on_sent(Time(1ms), {transmission.value + 1000}, transmission);
    }
  }
  std::vector<std::uint32_t> select() {
    selection = selector.select(Time(1ms));
    std::vector<std::uint32_t> frames;
    for (std::size_t i = 0; i < selection.count; ++i)
      frames.push_back(static_cast<std::uint32_t>(selection.picks[i].sequence - nth(0)));
    return frames;
  }
  void put_all_back() {
    for (std::size_t i = 0; i < selection.count; ++i) selector.put_back(selection.picks[i]);
  }

  using Frames = std::vector<std::uint32_t>;

  test::FakeLog log;
  wire::Opening opening = [] {
    wire::Opening made;
    made.session = 1;
    made.frame_max = 1472;
    made.window = 64;
    return made;
  }();
  Handshake handshake{opening};
  multipath::PathManager paths{{}, link::Path{}, 64, log};
  FrameSize frame_size{handshake, paths, log};
  FlowStatus status;
  BodyPool bodies{1472};
  SendQueue queue{handshake, frame_size, paths, bodies, status};
  FrameSelector selector{queue, handshake, paths};
  FrameSelector::Selection selection;
  TransmissionNumber transmission;
};

TEST_F(FrameSelectorTest, TheRepeatedFrameGoesFirstThenLostOnesOnceEach) {
  for (const std::uint32_t s : {0u, 1u, 2u}) queue.window().mark_lost(nth(s));
  selector.repeat(nth(1));
  EXPECT_EQ(select(), (Frames{1, 0, 2}));
  put_all_back();
  EXPECT_EQ(select(), (Frames{1, 0, 2}));
  for (const std::uint32_t s : {1u, 0u, 2u}) send(nth(s));
  EXPECT_EQ(select(), Frames{});
}

TEST_F(FrameSelectorTest, ALinkThatIsFullDoesNotTakeThePrivilegeOfTheRepeatedFrame) {
  queue.window().mark_lost(nth(1));
  fill_path();
  selector.repeat(nth(1));
  EXPECT_EQ(select(), Frames{1}) << "whatever the windows allow";
  put_all_back();
  EXPECT_EQ(select(), Frames{1});
  put_all_back();
  send(nth(1));
  EXPECT_FALSE(queue.window().has_lost()) << "it was queued once";
}

}  // namespace
}  // namespace cluster::reliability

// What comes in the realm of another key than that of the session's peer is not from that peer, whatever it says. Here no link
// seals: the realm of each frame is what the network says.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "network/session_cookies.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using network::SessionCookies;

using test::FakeNetwork;
using test::kA;
using test::kB;
using test::Node;
using wire::ControlFrame;
using wire::FrameKind;

constexpr std::uint8_t kOther = 1;

class RealmTest : public test::EngineTest {
 protected:
  RealmTest() {
    network.drop = [this](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameView view;
      if (wire::admit(packet.bytes, view) != wire::Refusal::none) return false;
      if (to == kA && packet.from == kB && view.session != 0) session_of_a = view.session;
      if (to == kB && view.session != 0) session_of_b = view.session;
      if (to.in_realm(0) == kB && view.kind == FrameKind::path_response) ++path_responses;
      if (to == kB && view.kind == FrameKind::keep_alive) question = packet.bytes;
      return silent && packet.from == kB && view.kind != FrameKind::alive;
    };
  }
  void meet() {
    a.send();
    b.send();
    pass(a, b);
    ASSERT_NE(session_of_a, 0u);
    ASSERT_NE(session_of_b, 0u);
  }
  /// As kB would ask.
  std::vector<std::byte> path_challenge() const {
    test::ForgedFrame frame;
    frame.header.kind = static_cast<std::uint8_t>(FrameKind::path_challenge);
    frame.header.session = session_of_a;
    frame.header.sequence = session_of_b;
    return frame.bytes();
  }
  /// kB says no more than `alive`, in this realm. True if that is enough.
  bool lives_by_answers_in(std::uint8_t realm) {
    meet();
    silent = true;
    a.send();
    for (int i = 0; i < 1600; ++i) {  // 8 s
      clock.advance(5ms);
      a.engine.poll();
      if (question.empty()) continue;
      wire::FrameView asked;
      EXPECT_EQ(wire::admit(question, asked), wire::Refusal::none);
      inject(kB.in_realm(realm), kA, ControlFrame::alive(asked).bytes());
      ++answers;
      question.clear();
    }
    EXPECT_GE(answers, 4);
    return a.counters().sessions_closed == 0;
  }

  std::uint32_t session_of_a = 0;
  std::uint32_t session_of_b = 0;
  int path_responses = 0;
  int answers = 0;
  bool silent = false;
  std::vector<std::byte> question;  ///< the last keep-alive to kB
  Node a{network, kA, kB, 1000};
  Node b{network, kB, kA, 1001};
};

TEST_F(RealmTest, APathChallengeIsAnsweredToThePeerAlone) {
  meet();
  inject(kB.in_realm(kOther), kA, path_challenge());
  pass(a);
  EXPECT_EQ(path_responses, 0);
  inject(kB, kA, path_challenge());
  pass(a);
  EXPECT_EQ(path_responses, 1);
}

TEST_F(RealmTest, APeerLivesByItsOwnAnswers) { EXPECT_TRUE(lives_by_answers_in(0)); }

TEST_F(RealmTest, APeerDoesNotLiveByAnswersUnderAnotherKey) { EXPECT_FALSE(lives_by_answers_in(kOther)); }

TEST_F(RealmTest, ACookieIsForOneRealm) {
  SessionCookies cookies(a.world_->random, 2);
  wire::FrameView frame;
  frame.has_opening = true;
  frame.opening.name = kB.in_realm(1);
  frame.opening.session = 0xABCDEF;
  frame.session = cookies.session_for(clock.now(), frame.opening);
  EXPECT_TRUE(cookies.named(clock.now(), frame));
  frame.opening.name = kB.in_realm(2);
  EXPECT_FALSE(cookies.named(clock.now(), frame));
  EXPECT_NE(cookies.digest(frame.opening), cookies.digest({.name = kB.in_realm(1)}));
}

/// Its messages to itself go by memory, and no frame tells with which key.
TEST_F(RealmTest, AnEndpointIsItselfInOneRealm) {
  const auto first = a.book.insert(kA.in_realm(2));
  const auto second = a.book.insert(kA.in_realm(1));
  const auto send_to = [&](AddressTable::Handle to) {
    const ConstBytes slice = as_bytes(&a.word, sizeof a.word);
    return a.engine.send({.slices = {&slice, 1}, .length = sizeof a.word, .to = to});
  };
  EXPECT_EQ(send_to(first), Status::ok);
  pass(a);
  EXPECT_EQ(a.engine.unexpected_messages(), 1u);
  EXPECT_NE(send_to(second), Status::ok);
  pass(a);
  EXPECT_EQ(a.engine.unexpected_messages(), 1u);
  EXPECT_EQ(a.logged("with two authorization keys"), 1u);
  EXPECT_EQ(send_to(first), Status::ok) << "the first stays";
}

}  // namespace
}  // namespace cluster::engine

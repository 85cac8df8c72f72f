// Endpoints with different keys: nothing arrives, and each side reports why.
#include "seal/keep_alive_seal.h"
#include "seal/sealed_link.h"
#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;
using test::Node;
using test::NodeKind;

constexpr std::string_view kJobKey = "0123456789abcdef";
constexpr std::string_view kOtherKey = "another key that";

class KeyDisagreement : public test::EngineTest {
 protected:
  static NodeKind keyed(Mode mode = Mode::auth, std::initializer_list<std::string_view> keys = {kJobKey}) {
    NodeKind kind;
    kind.credentials = test::credentials(keys, mode);
    return kind;
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer, const NodeKind& kind) {
    return std::make_unique<Node>(network, name, peer, ++epochs_, nullptr, test::node_settings(), kind);
  }
  static std::size_t arrived(Node& node) { return test::take(node.received).size(); }

 private:
  std::uint64_t epochs_ = 10;
};

/// While a key is changed, and nothing but keep-alives gets through to the peer: it is flooded.
TEST_F(KeyDisagreement, APeerWithThisSidesSecondKeyIsSeenToLive) {
  const auto a = node(kA, kB, keyed(Mode::auth, {kOtherKey, kJobKey}));
  const Credentials peers = test::credentials({kJobKey}, Mode::auth);
  std::vector<std::vector<std::byte>> answers;
  network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    KeepAliveAnswer answer;
    if (to == kB && answer_keep_alive(peers, packet.bytes, kB, answer))
      answers.emplace_back(answer.begin(), answer.end());
    return to == kB;
  };
  a->send();
  for (int i = 0; i < 1000; ++i) {  // twice the peer timeout
    clock.advance(10ms);
    a->engine.poll();
    for (const std::vector<std::byte>& answer : std::exchange(answers, {})) inject(kB, kA, answer);
  }
  EXPECT_EQ(a->counters().sessions_closed, 0u);
  EXPECT_EQ(a->counters().refused_forged, 0u);
  network.drop = [](const test::FakeNetwork::Packet&, const SocketAddress& to) { return to == kB; };
  for (int i = 0; i < 1000; ++i) {
    clock.advance(10ms);
    a->engine.poll();
  }
  EXPECT_EQ(a->counters().sessions_closed, 1u) << "it lives no more";
}

TEST_F(KeyDisagreement, AKeyAndNoneDoNotTalkAndEachSideSaysWhy) {
  const auto a = node(kA, kB, keyed());
  const auto b = node(kB, kA, {});
  b->receive();
  a->send();
  pass(*a, *b);
  a->receive();
  b->send();
  pass(*a, *b);
  EXPECT_EQ(arrived(*a) + arrived(*b), 0u);
  EXPECT_EQ(b->counters().frames_received + a->counters().frames_received, 0u);
  EXPECT_GT(a->counters().refused_unsealed, 0u);
  EXPECT_GT(b->counters().refused_sealed, 0u);
  EXPECT_EQ(a->logged("has no key and this process has one"), 1u);
  EXPECT_EQ(b->logged("their sender has a key and this process has none"), 1u);
}

TEST_F(KeyDisagreement, OneThatSendsWithoutAKeyLearnsWhyNothingArrives) {
  const auto a = node(kA, kB, {});
  const auto b = node(kB, kA, keyed());
  b->receive();
  a->send();
  for (int i = 0; i < 20 && a->logged("their sender has a key") == 0; ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 0u);
  EXPECT_EQ(a->logged("their sender has a key and this process has none"), 1u);
  EXPECT_EQ(b->logged("has no key and this process has one"), 1u);
}

TEST_F(KeyDisagreement, OneThatGetsNoAnswerToItsKeySaysWhatItMayBe) {
  const auto a = node(kA, kB, keyed());
  const auto b = node(kB, kA, keyed(Mode::auth, {kOtherKey}));
  b->receive();
  a->send();
  pass(*a, *b);
  EXPECT_EQ(a->logged("does not answer requests"), 0u);  // the peer may be about to open its endpoint
  for (int i = 0; i < 3000; ++i) pass(*a, *b);
  EXPECT_EQ(a->logged("does not answer requests"), 1u);
  EXPECT_EQ(arrived(*b), 0u);
}

TEST_F(KeyDisagreement, OtherKeysAndOtherModesDoNotTalk) {
  const auto a = node(kA, kB, keyed());
  for (const NodeKind& other : {keyed(Mode::auth, {kOtherKey}), keyed(Mode::encrypt)}) {
    const auto b = node(kB, kA, other);
    b->receive();
    a->send();
    for (int i = 0; i < 1500; ++i) pass(*a, *b);
    EXPECT_EQ(arrived(*b), 0u);
    EXPECT_EQ(b->counters().frames_received, 0u);
    EXPECT_GT(b->counters().refused_forged, 0u);
    EXPECT_EQ(b->logged("has another key than this process") + b->logged("has another FI_CLUSTER_SECURITY"),
              1u);
  }
}

/// a has the new key already, b not yet: that is how a key is changed, and no reason to warn.
TEST_F(KeyDisagreement, APeerThatHasTheKeyAsItsSecondIsNotWarnedAbout) {
  const auto a = node(kA, kB, keyed(Mode::auth, {kOtherKey, kJobKey}));
  const auto b = node(kB, kA, keyed());
  b->receive();
  a->send();
  for (int i = 0; i < 1500; ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
  EXPECT_GT(b->counters().refused_forged, 0u) << "it has asked with the other key first";
  EXPECT_EQ(b->logged("has another key than this process"), 0u);
}

}  // namespace
}  // namespace cluster::seal

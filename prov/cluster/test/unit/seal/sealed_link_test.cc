// Endpoints with a key, against on-path hosts that record frames: whole engines on a network where a test
// reads, alters and injects frames.
#include "seal/sealed_link.h"

#include <algorithm>
#include <cstring>

#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;
using test::Node;
using test::NodeKind;

struct Recorded {
  SocketAddress from;
  SocketAddress to;
  std::vector<std::byte> bytes;
};

constexpr std::string_view kSecret = "0123456789abcdef";
constexpr std::string_view kOther = "another key that";

class SealedLinkTest : public test::EngineTest {
 protected:
  SealedLinkTest() {
    network.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      recorded.push_back({packet.from, to, packet.bytes});
      return false;
    };
  }
  static NodeKind keyed(Mode mode = Mode::auth, std::initializer_list<std::string_view> keys = {kSecret}) {
    NodeKind kind;
    kind.credentials = test::credentials(keys, mode);
    return kind;
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer, const NodeKind& kind,
                             std::uint64_t epoch = 0) {
    if (epoch == 0) epoch = ++epochs_;
    return std::make_unique<Node>(network, name, peer, epoch, nullptr, test::node_settings(), kind);
  }
  /// One message from a to b arrives, and its sender knows.
  void exchange(Node& a, Node& b) {
    b.receive();
    a.send();
    pass(a, b);
    ASSERT_EQ(arrived(b), 1u);
    ASSERT_EQ(b.got, a.word);
  }
  /// Each sends before it has heard of the other.
  void exchange_at_once(Node& a, Node& b) {
    a.receive();
    b.receive();
    a.send();
    b.send();
    pass(a, b);
    EXPECT_EQ(arrived(a), 1u);
    EXPECT_EQ(arrived(b), 1u);
  }
  /// Messages received since the last call.
  static std::size_t arrived(Node& node) { return test::take_count(node.received); }
  void replay(std::size_t first = 0) {
    const std::vector<Recorded> all(recorded.begin() + static_cast<std::ptrdiff_t>(first), recorded.end());
    for (const Recorded& each : all) inject(each.from, each.to, each.bytes);
  }

  std::vector<Recorded> recorded;

 private:
  std::uint64_t epochs_ = 10;
};

class EachMode : public SealedLinkTest, public ::testing::WithParamInterface<Mode> {};

TEST_P(EachMode, MessagesArriveBothWays) {
  const auto a = node(kA, kB, keyed(GetParam()));
  const auto b = node(kB, kA, keyed(GetParam()));
  for (int i = 0; i < 20; ++i) {
    exchange(*a, *b);
    exchange(*b, *a);
  }
  EXPECT_EQ(a->counters().refused_forged + b->counters().refused_forged, 0u);
  EXPECT_EQ(a->counters().refused_checksum + b->counters().refused_malformed, 0u);
}

TEST_P(EachMode, BothSidesMayBeginAtOnce) {
  const auto a = node(kA, kB, keyed(GetParam()));
  const auto b = node(kB, kA, keyed(GetParam()));
  exchange_at_once(*a, *b);
}

TEST_P(EachMode, ALongMessageArrivesWhole) {
  const auto a = node(kA, kB, keyed(GetParam()));
  const auto b = node(kB, kA, keyed(GetParam()));
  network.conditions.joined = true;
  std::vector<std::byte> sent(1 << 20);
  std::vector<std::byte> got(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  const ConstBytes from(sent);
  const Bytes to(got);
  ASSERT_EQ(b->engine.receive({.slices = {&to, 1}, .ignore = ~std::uint64_t{0}}), Status::ok);
  ASSERT_EQ(a->engine.send({.slices = {&from, 1}, .length = from.size()}), Status::ok);
  for (int i = 0; i < 20 && b->received.empty(); ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
  EXPECT_TRUE(sent == got);
  EXPECT_EQ(b->counters().refused_malformed + b->counters().refused_forged, 0u);
}

TEST_P(EachMode, NothingThatIsAlteredIsTaken) {
  const auto a = node(kA, kB, keyed(GetParam()));
  const auto b = node(kB, kA, keyed(GetParam()));
  exchange(*a, *b);
  // The next frame of a, with each of its bytes altered in turn; then as it was.
  std::vector<std::byte> frame;
  network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kB && frame.empty()) frame = packet.bytes;
    return to == kB;
  };
  b->receive();
  a->send();
  pass(*a);
  ASSERT_FALSE(frame.empty());
  network.drop = nullptr;
  const std::uint64_t before = b->counters().frames_received;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    std::vector<std::byte> altered = frame;
    altered[i] ^= std::byte{1};
    inject(kA, kB, altered);
    pass(*b);
  }
  for (std::size_t size = 0; size < frame.size(); ++size) {
    inject(kA, kB, ConstBytes(frame).first(size));
    pass(*b);
  }
  EXPECT_EQ(b->counters().frames_received, before);
  EXPECT_EQ(arrived(*b), 0u);
  inject(kA, kB, frame);
  pass(*b);
  EXPECT_EQ(arrived(*b), 1u);
  EXPECT_GT(b->counters().refused_forged, 40u);
}

TEST_P(EachMode, NothingThatWasRecordedIsTakenAgain) {
  const auto a = node(kA, kB, keyed(GetParam()));
  const auto b = node(kB, kA, keyed(GetParam()));
  for (int i = 0; i < 5; ++i) exchange(*a, *b);
  const std::uint64_t taken_a = a->counters().frames_received;
  const std::uint64_t taken_b = b->counters().frames_received;
  replay();
  pass(*a, *b);
  EXPECT_EQ(a->counters().frames_received, taken_a);
  EXPECT_EQ(b->counters().frames_received, taken_b);
  EXPECT_GT(b->counters().refused_replayed, 5u);
  exchange(*a, *b);
  exchange(*b, *a);
}

TEST_P(EachMode, ARecordedSessionIsWorthNothingToTheNextProcess) {
  auto a = node(kA, kB, keyed(GetParam()));
  auto b = node(kB, kA, keyed(GetParam()));
  exchange(*a, *b);
  const std::vector<Recorded> first = recorded;
  b.reset();
  b = node(kB, kA, keyed(GetParam()));
  b->receive();
  for (int i = 0; i < 3; ++i) {
    for (const Recorded& each : first) inject(each.from, each.to, each.bytes);
    pass(*b);  // the peer is silent
  }
  EXPECT_EQ(arrived(*b), 0u);
  EXPECT_EQ(b->counters().frames_received, 0u);
  EXPECT_EQ(b->counters().unexpected, 0u);
}

TEST_P(EachMode, APeerThatBeginsAnewIsTalkedToAgain) {
  auto a = node(kA, kB, keyed(GetParam()));
  auto b = node(kB, kA, keyed(GetParam()));
  exchange(*a, *b);
  b.reset();
  pass(*a);
  b = node(kB, kA, keyed(GetParam()), 100);
  b->receive();
  for (int i = 0; i < 400 && b->received.empty(); ++i) {
    if (i % 20 == 0) a->send();
    pass(*a, *b);
  }
  EXPECT_EQ(arrived(*b), 1u);
  a->receive();
  b->send();
  for (int i = 0; i < 20 && a->received.empty(); ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*a), 1u);
}

TEST_P(EachMode, FramesSentBackAreNotTaken) {
  const auto a = node(kA, kB, keyed(GetParam()));
  const auto b = node(kB, kA, keyed(GetParam()));
  exchange(*a, *b);
  const std::uint64_t taken = a->counters().frames_received;
  const std::vector<Recorded> all = recorded;
  for (const Recorded& each : all) inject(each.to, each.from, each.bytes);
  pass(*a, *b);
  EXPECT_EQ(a->counters().frames_received, taken);
}

INSTANTIATE_TEST_SUITE_P(SealedLink, EachMode, ::testing::Values(Mode::auth, Mode::encrypt),
                         [](const auto& mode) { return mode.param == Mode::auth ? "Auth" : "Encrypt"; });

TEST_F(SealedLinkTest, OnlyEncryptionHidesWhatIsSent) {
  for (const Mode mode : {Mode::auth, Mode::encrypt}) {
    const auto a = node(kA, kB, keyed(mode));
    const auto b = node(kB, kA, keyed(mode));
    recorded.clear();
    a->word = 0x5ec4e75ec4e75ec3;
    exchange(*a, *b);
    const std::uint64_t word = a->word;
    const bool seen = std::any_of(recorded.begin(), recorded.end(), [&](const Recorded& each) {
      const auto* const begin = reinterpret_cast<const std::byte*>(&word);
      return std::search(each.bytes.begin(), each.bytes.end(), begin, begin + sizeof word) !=
             each.bytes.end();
    });
    EXPECT_EQ(seen, mode == Mode::auth);
  }
}

TEST_F(SealedLinkTest, EverySendingHasACounterOfItsOwn) {
  network.conditions.loss = 0.2;
  network.conditions.duplicate = 0;
  const auto a = node(kA, kB, keyed());
  const auto b = node(kB, kA, keyed());
  for (int i = 0; i < 50; ++i) {
    b->receive();
    a->send();
    pass(*a, *b);
  }
  EXPECT_EQ(arrived(*b), 50u);
  EXPECT_GT(a->counters().frames_retransmitted, 0u);
  std::vector<std::uint64_t> counters;
  for (const Recorded& each : recorded) {
    wire::FrameHeader header;
    wire::SealTrailer trailer;
    std::memcpy(&header, each.bytes.data(), sizeof header);
    if (!(each.from == kA) || header.kind != static_cast<std::uint8_t>(wire::FrameKind::flow)) continue;
    std::memcpy(&trailer, each.bytes.data() + each.bytes.size() - sizeof trailer, sizeof trailer);
    counters.push_back(trailer.counter);
  }
  std::sort(counters.begin(), counters.end());
  EXPECT_EQ(std::adjacent_find(counters.begin(), counters.end()), counters.end());
}

TEST_F(SealedLinkTest, AKeyIsChangedWithoutStopping) {
  // All processes that run have the old key. New ones begin with the new one, and accept the old.
  const auto old_one = node(kA, kB, keyed(Mode::auth, {kOther}));
  const auto changing = node(kB, kA, keyed(Mode::auth, {kSecret, kOther}));
  exchange(*old_one, *changing);
  exchange(*changing, *old_one);
  const SocketAddress third = test::node_name(4);
  const auto new_one = node(third, kB, keyed(Mode::auth, {kSecret}));
  changing->receive();
  new_one->send();
  pass(*new_one, *changing);
  EXPECT_EQ(changing->got, new_one->word);
}

TEST_F(SealedLinkTest, TheSecondKeyIsTriedWhenTheFirstIsNotAnswered) {
  const auto changing = node(kA, kB, keyed(Mode::auth, {kSecret, kOther}));
  const auto old_one = node(kB, kA, keyed(Mode::auth, {kOther}));
  old_one->receive();
  changing->send();
  for (int i = 0; i < 10 && old_one->received.empty(); ++i) pass(*changing, *old_one);
  EXPECT_EQ(arrived(*old_one), 1u);
}

TEST_F(SealedLinkTest, TwoThatBeginWithDifferentKeysAtOnceAgree) {
  const auto a = node(kA, kB, keyed(Mode::auth, {kSecret, kOther}));
  const auto b = node(kB, kA, keyed(Mode::auth, {kOther, kSecret}));
  exchange_at_once(*a, *b);
  EXPECT_EQ(a->counters().refused_forged + b->counters().refused_forged, 0u);
}

TEST_F(SealedLinkTest, ARequestIsWorthNothingElsewhere) {
  const SocketAddress third = test::node_name(4);
  const auto a = node(kA, kB, keyed());
  const auto c = node(third, kA, keyed());
  // What a sends to b is brought to c, and what c answers comes back as if b had sent it.
  network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (to == kB) inject(packet.from, third, packet.bytes);
    if (packet.from == third) inject(kB, kA, packet.bytes);
    return to == kB || packet.from == third;
  };
  c->receive();
  a->send();
  pass(*a, *c);
  EXPECT_EQ(arrived(*c), 0u);
  EXPECT_EQ(c->counters().frames_received, 0u);
  EXPECT_GT(c->counters().refused_malformed, 0u);
}

TEST_F(SealedLinkTest, ForgedNoticesCostARequestNowAndThen) {
  const auto a = node(kA, kB, keyed());
  const auto b = node(kB, kA, keyed());
  exchange(*a, *b);
  wire::FrameHeader sealed{};
  for (const Recorded& each : recorded) {
    if (each.from == kA) std::memcpy(&sealed, each.bytes.data(), sizeof sealed);
  }
  recorded.clear();
  const wire::FrameHeader notice = make_notice(sealed);
  for (int i = 0; i < 100; ++i) {
    inject(kB, kA, as_bytes(&notice, sizeof notice));
    pass(*a, *b);  // 1 ms
  }
  std::size_t requests = 0;
  for (const Recorded& each : recorded) {
    requests += each.bytes[2] == static_cast<std::byte>(wire::FrameKind::association_request) ? 1 : 0;
  }
  EXPECT_GE(requests, 1u);
  EXPECT_LE(requests, 3u);
  EXPECT_GE(a->counters().refused_stale + requests, 100u) << "a flood of them is to be seen";
  exchange(*a, *b);
}

TEST_F(SealedLinkTest, DatagramsAreSealedToo) {
  NodeKind kind = keyed(Mode::encrypt);
  kind.type = engine::EndpointType::dgram;
  const auto a = node(kA, kB, kind);
  const auto b = node(kB, kA, kind);
  b->receive();
  a->send();
  pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
  b->receive();
  replay();
  pass(*a, *b);
  EXPECT_EQ(arrived(*b), 0u) << "a recorded datagram is not taken again";
}

}  // namespace
}  // namespace cluster::seal

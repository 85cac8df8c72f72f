// An endpoint whose peers have keys of their own: each is reached under its key, and no process with another key is taken for it.
#include <algorithm>
#include <cstring>

#include "seal/keep_alive_seal.h"
#include "seal/sealed_link.h"
#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;
using test::Node;
using test::NodeKind;

constexpr std::string_view kOne = "the key of the first job";
constexpr std::string_view kTwo = "the key of the second job";
const SocketAddress kC = test::node_name(4);

/// With the key `mine` it gives the id that `salt` gives with `its` key.
Salt salt_of_the_same_id(Salt salt, const KeyId& its, const KeyId& mine) {
  for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i) salt[i] = static_cast<std::uint8_t>(salt[i] ^ its[i] ^ mine[i]);
  return salt;
}

/// Says one salt, and then what it likes.
class SaltFirst final : public Random {
 public:
  explicit SaltFirst(const Salt& salt) { std::memcpy(words_.data(), salt.data(), sizeof words_); }
  std::uint64_t next() override { return said_ < words_.size() ? words_[said_++] : ++said_; }

 private:
  std::array<std::uint64_t, sizeof(Salt) / sizeof(std::uint64_t)> words_;
  std::size_t said_ = 0;
};

/// kA knows kB with the second key, and perhaps others.
class RealmsTest : public test::EngineTest, public ::testing::WithParamInterface<Mode> {
 protected:
  NodeKind both() const {
    NodeKind kind = of({kOne, kTwo});
    kind.credentials->realms = {1, 2};
    return kind;
  }
  NodeKind of(std::initializer_list<std::string_view> keys) const {
    NodeKind kind;
    kind.credentials = test::credentials(keys, GetParam());
    return kind;
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer, const NodeKind& kind) {
    auto made = std::make_unique<Node>(network, name, peer, ++epochs_, nullptr, test::node_settings(), kind);
    made->engine.attach(made->book, {.tx_queue = &made->sent, .rx_queue = &made->received, .want_source = true});
    return made;
  }
  /// From the peer with this handle alone.
  static void receive_from(Node& node, std::uint64_t handle) {
    const Bytes slice = as_bytes(&node.got, sizeof node.got);
    EXPECT_EQ(node.engine.receive({.slices = {&slice, 1}, .from = handle, .ignore = ~std::uint64_t{0}}), Status::ok);
  }
  /// The sources of what was received since the last call.
  static std::vector<std::uint64_t> sources(Node& node) {
    std::vector<std::uint64_t> sources;
    node.received.drain(
        1000, [](const protocol::Completion&) { return true; },
        [&](const protocol::Completion& each) {
          EXPECT_EQ(each.status, Status::ok);
          sources.push_back(each.source);
        });
    return sources;
  }

 private:
  std::uint64_t epochs_ = 10;
};

INSTANTIATE_TEST_SUITE_P(, RealmsTest, ::testing::Values(Mode::auth, Mode::encrypt),
                         [](const auto& each) { return each.param == Mode::auth ? "auth" : "encrypt"; });

TEST_P(RealmsTest, EachPeerIsReachedUnderItsKey) {
  const auto hub = node(kA, kB.in_realm(2), both());
  EXPECT_EQ(hub->book.insert(kC.in_realm(1)), 1u);
  const auto b = node(kB, kA, of({kTwo}));
  const auto c = node(kC, kA, of({kOne}));
  b->receive();
  hub->send();
  pass(*hub, *b, *c);
  EXPECT_EQ(b->got, hub->word);
  receive_from(*hub, 1);
  receive_from(*hub, 0);
  b->send();
  c->send();
  pass(*hub, *b, *c);
  std::vector<std::uint64_t> from = sources(*hub);
  std::ranges::sort(from);
  EXPECT_EQ(from, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(hub->counters().refused_forged, 0u);
}

TEST_P(RealmsTest, WithAnotherKeyNoProcessIsThePeer) {
  const auto hub = node(kA, kB.in_realm(2), both());
  {
    // A process of the first job at the address of the second one's: it is let in, and is an unknown source.
    const auto impostor = node(kB, kA, of({kOne}));
    receive_from(*hub, 0);
    impostor->send();
    pass(*hub, *impostor);
    EXPECT_EQ(sources(*hub), std::vector<std::uint64_t>{}) << "it has spoken for the peer";
    hub->receive();
    pass(*hub, *impostor);
    EXPECT_EQ(sources(*hub), std::vector<std::uint64_t>{protocol::kAddrNotAvail});
    impostor->receive();
    hub->send();  // to the peer
    pass(*hub, *impostor);
    EXPECT_TRUE(impostor->received.empty()) << "it has got what was for the peer";
  }
  const auto b = node(kB, kA, of({kTwo}));
  b->send();
  for (int i = 0; i < 200 && hub->received.empty(); ++i) pass(*hub, *b);
  EXPECT_EQ(sources(*hub), std::vector<std::uint64_t>{0});
}

TEST_P(RealmsTest, OneAddressWithTwoKeysIsTwoPeers) {
  const auto hub = node(kA, kB.in_realm(2), both());
  EXPECT_EQ(hub->book.insert(kB.in_realm(1)), 1u);
  const auto other = node(kB, kA.in_realm(1), both());
  EXPECT_EQ(other->book.insert(kA.in_realm(2)), 1u);
  for (const std::uint64_t handle : {0u, 1u, 1u, 0u}) {
    receive_from(*hub, handle);
    const std::uint64_t word = 1000 + handle;
    const ConstBytes slice = as_bytes(&word, sizeof word);
    EXPECT_EQ(other->engine.send({.slices = {&slice, 1}, .length = sizeof word, .to = 1 - handle}), Status::ok);
    pass(*hub, *other);
    EXPECT_EQ(sources(*hub), std::vector<std::uint64_t>{handle});
    EXPECT_EQ(hub->got, word);
  }
}

/// Frames of both that arrive back to back go up one peer at a time.
TEST_P(RealmsTest, ArrivalsOfTwoPeersAreNotMixed) {
  network.conditions.joined = true;
  const auto hub = node(kA, kB.in_realm(2), both());
  EXPECT_EQ(hub->book.insert(kB.in_realm(1)), 1u);
  const auto other = node(kB, kA.in_realm(1), both());
  EXPECT_EQ(other->book.insert(kA.in_realm(2)), 1u);
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 40; ++i) {
    for (const std::uint64_t to : {0u, 1u}) {
      hub->receive();
      const std::uint64_t word = 1;
      const ConstBytes slice = as_bytes(&word, sizeof word);
      EXPECT_EQ(other->engine.send({.slices = {&slice, 1}, .length = sizeof word, .to = to}), Status::ok);
      expected.push_back(to);
    }
    if (i % 8 == 0) pass(*hub, *other);
  }
  for (int i = 0; i < 20; ++i) pass(*hub, *other);
  std::vector<std::uint64_t> got = sources(*hub);
  std::ranges::sort(got);
  std::ranges::sort(expected);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(hub->counters().refused_stale, 0u) << "one peer's frames went up as the other's, and were sent again";
  EXPECT_EQ(hub->counters().refused_forged, 0u) << "one peer's frames were opened with the other's keys";
}

TEST_P(RealmsTest, APeerWithAKeyThatIsNotThereIsNotReached) {
  const auto hub = node(kA, kB.in_realm(3), both());
  const auto b = node(kB, kA, of({kOne, kTwo}));
  b->receive();
  hub->send();
  pass(*hub, *b);
  EXPECT_TRUE(b->received.empty());
  EXPECT_EQ(hub->logged("inserted after this endpoint was opened"), 1u);
}

/// Of the same job, or of another: what is in a session is its peer's alone.
TEST_P(RealmsTest, ASessionTakesNothingUnderAnotherKey) {
  if (GetParam() == Mode::encrypt) return;  // there is nothing to read on the way
  const auto hub = node(kA, kB.in_realm(2), both());
  const auto b = node(kB, kA, of({kTwo}));
  std::vector<std::byte> seen;
  network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    wire::FrameHeader header;
    std::memcpy(&header, packet.bytes.data(), sizeof header);
    if (to != kA || header.session == 0 || header.kind != static_cast<std::uint8_t>(wire::FrameKind::flow)) return false;
    seen = packet.bytes;
    return true;  // it does not arrive
  };
  hub->receive();
  b->send();
  for (int i = 0; i < 5 && seen.empty(); ++i) pass(*hub, *b);
  network.drop = nullptr;
  ASSERT_FALSE(seen.empty());
  // The same frame from the same address, sealed with the first key.
  seen.resize(seen.size() - sizeof(wire::SealTrailer));
  seen[3] &= ~std::byte{wire::frame_flag::kSealed};
  Node::World world(network.clock(), 77);
  SealedLink thief(std::make_unique<test::FakeLink>(network, kB), test::credentials({kOne}), {kB}, world.environment(),
                   &test::kSameProcess);
  const link::Path path{kA};
  std::array<link::InFrame, 4> in;
  for (int i = 0; i < 10; ++i) {
    link::OutFrame frame;
    frame.path = &path;
    frame.add(seen);
    thief.send_burst({&frame, 1});
    pass(*hub);
    thief.receive_burst(in);
  }
  EXPECT_GE(hub->counters().refused_stale, 9u);
  EXPECT_TRUE(hub->received.empty());
}

/// It has another key, an address of its own, and says that the peer's is one of its as well.
TEST_P(RealmsTest, AProcessThatHasTakenAPeersIdDoesNotStandInItsWay) {
  const auto hub = node(kA, kB.in_realm(2), both());
  const Credentials credentials = test::credentials({kOne, kTwo});
  constexpr std::uint64_t kEpochOfPeer = 12;  // the next node's
  test::FakeRandom same(kEpochOfPeer);
  SaltFirst chosen(salt_of_the_same_id(draw_salt(same), credentials.keys[1]->id(), credentials.keys[0]->id()));
  Node::World world(network.clock(), 77);
  SealedLink thief(std::make_unique<test::FakeLink>(network, kC), test::credentials({kOne}, GetParam()), {kC, kB},
                   {network.clock(), chosen, world.log, world.counters}, &test::kSameProcess);
  const link::Path path{kA};
  const std::vector<std::byte> call = test::ForgedFrame::call(kC, 0xF0F0, 1).bytes();
  std::array<link::InFrame, 4> in;
  for (int i = 0; i < 10; ++i) {
    link::OutFrame frame;
    frame.path = &path;
    frame.add(call);
    thief.send_burst({&frame, 1});
    pass(*hub);
    thief.receive_burst(in);
  }
  EXPECT_GE(hub->counters().frames_received, 1u) << "its frames open";
  const auto b = node(kB, kA, of({kTwo}));
  for (int i = 0; i < 3; ++i) {
    hub->receive();
    b->send();
    for (int turn = 0; turn < 100 && hub->received.empty(); ++turn) pass(*hub, *b);
    EXPECT_EQ(sources(*hub), std::vector<std::uint64_t>{0});
    EXPECT_EQ(hub->got, b->word);
  }
}

/// It is silent but for this; the process at its address that answers has one of the keys.
TEST_P(RealmsTest, APeerLivesByAnswersUnderItsOwnKeyAlone) {
  for (const std::size_t key : {1u, 0u}) {
    const auto hub = node(kA, kB.in_realm(2), both());
    const auto b = node(kB, kA, of({kTwo}));
    hub->send();
    for (int i = 0; i < 5; ++i) pass(*hub, *b);
    std::vector<std::byte> question;
    network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameHeader header;
      std::memcpy(&header, packet.bytes.data(), sizeof header);
      if (to == kB && header.kind == static_cast<std::uint8_t>(wire::FrameKind::keep_alive)) question = packet.bytes;
      return packet.from == kB && header.kind != static_cast<std::uint8_t>(wire::FrameKind::alive);
    };
    hub->send();
    const Credentials keys = test::credentials({kOne, kTwo}, GetParam());
    int answers = 0;
    for (int i = 0; i < 1600; ++i) {  // 8 s
      clock.advance(5ms);
      hub->engine.poll();
      if (question.size() < sizeof(wire::FrameHeader) + sizeof(wire::SealTrailer)) continue;
      wire::FrameHeader header;
      wire::SealTrailer trailer;
      std::byte* const end = question.data() + question.size() - sizeof trailer;
      std::memcpy(&header, question.data(), sizeof header);
      std::memcpy(&trailer, end, sizeof trailer);
      header.kind = static_cast<std::uint8_t>(wire::FrameKind::alive);
      header.session = header.sequence;
      ASSERT_TRUE(seal_keep_alive(*keys.keys[key], GetParam(), header, kB, trailer));
      std::memcpy(question.data(), &header, sizeof header);
      std::memcpy(end, &trailer, sizeof trailer);
      inject(kB, kA, question);
      question.clear();
      ++answers;
    }
    EXPECT_GE(answers, 4);
    EXPECT_EQ(hub->counters().sessions_closed, key == 1 ? 0u : 1u) << key;
    EXPECT_EQ(hub->counters().refused_forged != 0, key == 0) << key;
    network.drop = nullptr;
  }
}

TEST(RealmsOfCredentials, EachKeyIsForItsOwn) {
  Credentials credentials = test::credentials({kOne, kTwo});
  EXPECT_EQ(credentials.keys_for(0).size(), 2u);
  EXPECT_TRUE(credentials.keys_for(1).empty());
  EXPECT_EQ(credentials.realm_of(credentials.keys[1]->id()), 0);
  credentials.realms = {3, 5};
  EXPECT_TRUE(credentials.keys_for(0).empty());
  ASSERT_EQ(credentials.keys_for(5).size(), 1u);
  EXPECT_EQ(credentials.keys_for(5)[0], credentials.keys[1]);
  EXPECT_EQ(credentials.realm_of(credentials.keys[0]->id()), 3);
}

/// A process that sees the frames of a peer can choose a salt that gives its own the same id.
TEST(RealmsOfAssociations, NoProcessTakesTheIdOfAPeer) {
  const Credentials credentials = test::credentials({kOne, kTwo});
  const Party ours{Salt{9}, {kA}};
  const auto association = [&](std::size_t key, Salt salt, std::uint8_t realm) {
    return std::make_unique<Association>(credentials.keys[key], Mode::auth, ours, Party{salt, {kB.in_realm(realm)}});
  };
  const Salt salt{1, 2, 3, 4, 5};
  const Salt same = salt_of_the_same_id(salt, credentials.keys[1]->id(), credentials.keys[0]->id());
  AssociationTable table;
  Association* const other = table.add(association(0, same, 1));
  ASSERT_NE(other, nullptr);
  table.make_current(*other);
  Association* const peer = table.add(association(1, salt, 2));
  ASSERT_NE(peer, nullptr) << "with the other key";
  ASSERT_EQ(peer->peer_id(), other->peer_id());
  EXPECT_FALSE(table.find(kB, peer->peer_id()).alone);
  table.make_current(*peer);
  Salt third = salt;
  third[7] = 7;
  EXPECT_EQ(table.add(association(1, third, 2)), nullptr) << "with the same key";
  Association* const found = table.find_opener(kB, peer->peer_id(), [](const Association& each) { return each.realm() == 2; });
  EXPECT_EQ(found, peer);
}

}  // namespace
}  // namespace cluster::seal

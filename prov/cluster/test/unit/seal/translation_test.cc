// A peer behind a router that translates its address, and the attackers of docs/design/28-translation.md:
// whole engines with a key, and a router and an on-path host between them.
#include "seal/translation.h"

#include <cstring>
#include <map>
#include <set>

#include "seal/keep_alive_seal.h"
#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;
using test::Node;
using test::NodeKind;
using Packet = test::FakeNetwork::Packet;

constexpr std::string_view kSecret = "0123456789abcdef";
const SocketAddress kC = test::node_name(4);
const SocketAddress kRouter = test::node_name(77).with_port(40000);
const SocketAddress kForged = test::node_name(66).with_port(666);

wire::FrameKind kind_of(ConstBytes frame) {
  return static_cast<wire::FrameKind>(frame[offsetof(wire::FrameHeader, kind)]);
}

/// b is behind the router, which gives the frames of b the source `outside`. a calls b in vain as long as the
/// router is closed. The keep-alive responder of b answers.
class TranslationTest : public test::EngineTest {
 protected:
  struct Frame {
    SocketAddress from;
    SocketAddress to;
    std::vector<std::byte> bytes;
  };

  TranslationTest() {
    network.drop = [this](const Packet& packet, const SocketAddress& to) { return take(packet, to); };
  }
  std::unique_ptr<Node> node(const SocketAddress& name, const SocketAddress& peer, std::uint64_t epoch = 0) {
    NodeKind kind;
    kind.credentials = credentials_;
    return std::make_unique<Node>(network, name, peer, epoch != 0 ? epoch : ++epochs_, nullptr,
                                  test::node_settings(), kind);
  }
  /// What the router does with a frame. Returns true if the frame does not arrive as it was sent.
  bool take(const Packet& packet, const SocketAddress& to) {
    seen.push_back({packet.from, to, packet.bytes});
    if (packet.from == kB && !translated_) {
      if (on_the_way_out && on_the_way_out(packet.bytes)) return true;
      forward(outside, to, packet.bytes);
      return true;
    }
    if (to == outside || to == kB || to == still_open) {
      if (to == kB && closed && packet.from != kB && !inward_) return true;
      KeepAliveAnswer answer;
      if (answer_keep_alive(credentials_, packet.bytes, kB, answer)) {
        if (answers) forward(outside, packet.from, answer);
        return true;
      }
      if (to == kB) return false;
      inward_ = true;
      inject(packet.from, kB, packet.bytes);
      inward_ = false;
      return true;
    }
    return false;
  }
  void forward(const SocketAddress& from, const SocketAddress& to, ConstBytes bytes) {
    translated_ = true;
    inject(from, to, bytes);
    translated_ = false;
  }
  /// A message from one to the other arrives within some time.
  void exchange(Node& from, Node& to) {
    to.receive();
    from.send();
    for (int i = 0; i < 300 && to.received.empty(); ++i) pass(from, to);
    ASSERT_EQ(arrived(to), 1u);
    ASSERT_EQ(to.got, from.word);
  }
  static std::size_t arrived(Node& node) { return test::take_count(node.received); }
  /// A request of another process of the job, which has the name of b.
  std::vector<std::byte> request_of_twin(std::uint64_t number) const {
    AssociationFrame request;
    request.key_id = credentials_.keys[0]->id();
    request.sender = {Salt{1, 2, 3}, {kB}};
    request.to = kA;
    request.number = number;
    std::vector<std::byte> bytes = encode(request);
    set_tag(bytes, credentials_.keys[0]->authenticate(JobKey::Purpose::request, tagged_part(bytes)));
    return bytes;
  }
  std::size_t sent_to(const SocketAddress& to, wire::FrameKind kind) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        seen, [&](const Frame& each) { return each.to == to && kind_of(each.bytes) == kind; }));
  }
  /// Frames that b has sent to a since the test began.
  std::vector<Frame> of_b() const {
    std::vector<Frame> frames;
    for (const Frame& each : seen) {
      if (each.from == kB && each.to == kA) frames.push_back(each);
    }
    return frames;
  }

  /// b ends without a word, and its successor calls nobody.
  void replace_silently(std::unique_ptr<Node>& b) {
    on_the_way_out = [](ConstBytes) { return true; };
    b.reset();
    on_the_way_out = nullptr;
    b = node(kB, kA, 1'000'000'000);
  }

  /// The session of a with the predecessor of b ends, and messages pass again.
  void expect_found(Node& a, Node& b) {
    a.send();
    for (int i = 0; i < 3000 && a.counters().sessions_closed == 0; ++i) pass(a, b);
    EXPECT_EQ(a.counters().sessions_closed, 1u);
    exchange(a, b);
  }

  SocketAddress outside = kRouter;
  SocketAddress still_open;  ///< another source under which the router forwards frames to b
  bool closed = true;
  bool answers = true;  ///< the keep-alive responder of b
  /// Sees each frame of b before the router does. Returns true if it does not pass.
  std::function<bool(ConstBytes)> on_the_way_out;
  std::vector<Frame> seen;
  Credentials credentials_ = test::credentials({kSecret}, Mode::auth);

 private:
  bool translated_ = false;
  bool inward_ = false;
  std::uint64_t epochs_ = 10;
};

TEST_F(TranslationTest, MessagesPassBothWaysWithNothingSet) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  for (int i = 0; i < 5; ++i) {
    exchange(*a, *b);
    exchange(*b, *a);
  }
  EXPECT_EQ(a->peer().name, kB) << "the application knows the peer by its own address";
  EXPECT_EQ(a->logged("peer " + kB.text() + " is behind a router that translates its address"), 1u);
  EXPECT_EQ(a->counters().sessions_closed + b->counters().sessions_closed, 0u);
}

TEST_F(TranslationTest, ACallThatWaitsArrivesOnceThePeerHasCalled) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  b->receive();
  a->send();
  for (int i = 0; i < 50; ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 0u);
  exchange(*b, *a);
  for (int i = 0; i < 300 && b->received.empty(); ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
}

TEST_F(TranslationTest, TheRouterMayChangeThePortAtAnyTime) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  for (std::uint16_t port = 40001; port < 40040; ++port) {
    outside = kRouter.with_port(port);
    exchange(*b, *a);
    exchange(*a, *b);
  }
  EXPECT_EQ(a->counters().sessions_closed + b->counters().sessions_closed, 0u);
}

TEST_F(TranslationTest, ThePeerMayRestartBehindTheRouter) {
  const auto a = node(kA, kB);
  auto b = node(kB, kA);
  exchange(*b, *a);
  b.reset();
  for (int i = 0; i < 20; ++i) pass(*a);
  b = node(kB, kA, 1000);
  exchange(*b, *a);
  exchange(*a, *b);
}

TEST_F(TranslationTest, APeerThatIsCalledAfterItsRestartIsFound) {
  const auto a = node(kA, kB);
  auto b = node(kB, kA);
  exchange(*b, *a);
  exchange(*a, *b);
  b.reset();
  seen.clear();
  b = node(kB, kA, 1000);
  b->receive();
  for (int i = 0; i < 600 && b->received.empty(); ++i) {
    if (i % 20 == 0) a->send();
    pass(*a, *b);
  }
  EXPECT_EQ(arrived(*b), 1u);
}

/// The router lets calls pass to b, but still translates what b sends.
TEST_F(TranslationTest, ACalledPeerAnswersFromTheRouter) {
  auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  a.reset();
  pass(*b);
  closed = false;
  a = node(kA, kB, 1'000'000'000);
  b->receive();
  a->send();
  for (int i = 0; i < 300 && b->received.empty(); ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
}

/// b has answered a call at its own address first. Then its frames come over the router, and it restarts.
TEST_F(TranslationTest, APeerThatWasCalledDirectlyMayRestartBehindTheRouter) {
  closed = false;
  const auto a = node(kA, kB);
  auto b = node(kB, kA);
  exchange(*a, *b);
  exchange(*b, *a);
  b.reset();
  for (int i = 0; i < 20; ++i) pass(*a);
  closed = true;
  outside = kRouter.with_port(40001);
  b = node(kB, kA, 1'000'000'000);
  exchange(*b, *a);
  exchange(*a, *b);
}

/// The notices of the successor come from a source that a does not know. Its answers to keep-alives do not
/// keep the session of its predecessor alive.
TEST_F(TranslationTest, ASuccessorThatCallsNobodyIsFoundByItsAnswers) {
  closed = false;
  outside = kB;
  const auto a = node(kA, kB);
  auto b = node(kB, kA);
  exchange(*a, *b);
  outside = kRouter;
  replace_silently(b);
  expect_found(*a, *b);
}

/// The router forwards what comes to its earlier port, but sends from another one.
TEST_F(TranslationTest, ASuccessorBehindAnEarlierPortIsFound) {
  const auto a = node(kA, kB);
  auto b = node(kB, kA);
  exchange(*b, *a);
  exchange(*a, *b);
  still_open = kRouter;
  outside = kRouter.with_port(40001);
  replace_silently(b);
  expect_found(*a, *b);
}

/// A peer that computes reads no requests, which would fill its socket.
TEST_F(TranslationTest, APeerThatComputesGetsFewRequests) {
  closed = false;
  outside = kB;
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*a, *b);
  outside = kRouter;
  a->send();
  seen.clear();
  for (int i = 0; i < 6000; ++i) {
    clock.advance(10ms);
    a->engine.poll();
  }
  const std::size_t answered = sent_to(kA, wire::FrameKind::alive);
  EXPECT_GT(answered, 40u);
  EXPECT_LE(sent_to(kB, wire::FrameKind::association_request), 4 + answered / 8);
}

/// The router says that it knows no such port. The process of b lives, and its next frame shows the new port.
TEST_F(TranslationTest, AClosedPortOfTheRouterEndsNoSession) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  exchange(*a, *b);
  network.absent = kRouter;
  outside = kRouter.with_port(40001);
  b->receive();
  a->send();
  for (int i = 0; i < 1500; ++i) pass(*a);
  EXPECT_EQ(a->counters().sessions_closed, 0u);
  exchange(*b, *a);
  for (int i = 0; i < 300 && b->received.empty(); ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
}

/// Rule 1, first sentence. Once, and as a flood.
TEST_F(TranslationTest, ACopyOfARequestFromAnotherSourceChangesNothing) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  const std::vector<Frame> all = of_b();
  ASSERT_EQ(kind_of(all[0].bytes), wire::FrameKind::association_request);
  seen.clear();
  for (std::uint16_t port = 1; port <= 500; ++port) inject(kForged.with_port(port), kA, all[0].bytes);
  pass(*a, *b);
  for (std::uint16_t port = 1; port <= 500; ++port)
    EXPECT_EQ(sent_to(kForged.with_port(port), wire::FrameKind::association_response), 0u);
  exchange(*a, *b);
  exchange(*b, *a);
  EXPECT_EQ(a->counters().sessions_closed + b->counters().sessions_closed, 0u);
}

/// The host on the path is faster than the router: every third frame arrives from its source first.
TEST_F(TranslationTest, AHostOnThePathMovesNoAnswers) {
  std::size_t passed = 0;  // outlives the nodes, which say goodbye through the router
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  on_the_way_out = [&](ConstBytes bytes) {
    if (++passed % 3 == 0) forward(kForged, kA, bytes);
    return false;
  };
  for (int i = 0; i < 20; ++i) {
    exchange(*b, *a);
    exchange(*a, *b);
  }
  EXPECT_NE(sent_to(kForged, wire::FrameKind::keep_alive), 0u);
  EXPECT_EQ(sent_to(kForged, wire::FrameKind::flow), 0u);
  EXPECT_EQ(sent_to(kForged, wire::FrameKind::path_challenge), 0u);
  EXPECT_EQ(a->counters().sessions_closed + b->counters().sessions_closed, 0u);
}

/// Rule 1: what was asked at one source cannot be answered from another.
TEST_F(TranslationTest, AnAnswerCountsOnlyForTheSourceThatWasAsked) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  // The next frame of b arrives only from the forged source, and a asks there.
  on_the_way_out = [this](ConstBytes bytes) {
    forward(kForged, kA, bytes);
    return true;
  };
  seen.clear();
  b->send();
  pass(*a, *b);
  KeepAliveAnswer answer;
  const auto asked = std::ranges::find_if(seen, [&](const Frame& each) {
    return each.to == kForged && answer_keep_alive(credentials_, each.bytes, kB, answer);
  });
  ASSERT_NE(asked, seen.end());
  const SocketAddress third = kForged.with_port(667);
  forward(third, kA, answer);
  b->send();
  pass(*a, *b);
  on_the_way_out = nullptr;
  exchange(*a, *b);
  EXPECT_EQ(sent_to(third, wire::FrameKind::flow) + sent_to(kForged, wire::FrameKind::flow), 0u);
}

/// Rule 2: as long as nothing answers at the source, nothing goes there.
TEST_F(TranslationTest, NothingGoesToASourceThatDoesNotAnswer) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  answers = false;
  b->send();
  a->send();
  for (int i = 0; i < 200; ++i) pass(*a, *b);
  EXPECT_EQ(sent_to(kRouter, wire::FrameKind::flow), 0u);
  EXPECT_NE(sent_to(kRouter, wire::FrameKind::keep_alive), 0u);
  answers = true;
  b->receive();
  for (int i = 0; i < 300 && b->received.empty(); ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*b), 1u);
}

/// Rule 2: a process without the key of the job has no part in this.
TEST_F(TranslationTest, AStrangerUnderTheNameOfAPeerGetsNothing) {
  const auto a = node(kA, kB);
  a->receive();
  test::ForgedFrame call = test::ForgedFrame::call(kB, 5, std::uint64_t{1} << 60);
  forward(kForged, kA, call.bytes());
  pass(*a);
  credentials_ = test::credentials({"another key that"}, Mode::auth);
  const auto b = node(kB, kA);
  b->send();
  for (int i = 0; i < 100; ++i) pass(*a, *b);
  EXPECT_EQ(arrived(*a), 0u);
  EXPECT_EQ(a->counters().frames_received, 0u);
  EXPECT_EQ(sent_to(kRouter, wire::FrameKind::association_response), 0u);
}

/// Rule 3: c is a peer with that address.
TEST_F(TranslationTest, ASourceThatAnotherPeerListsIsRefused) {
  const auto a = node(kA, kC);
  const auto c = node(kC, kA);
  exchange(*c, *a);
  exchange(*a, *c);
  outside = kC;
  const auto b = node(kB, kA);
  b->send();
  for (int i = 0; i < 100; ++i) pass(*a, *b, *c);
  EXPECT_EQ(arrived(*a), 0u);
  EXPECT_EQ(a->logged("peer " + kB.text() + " is refused: a router has replaced its address"), 1u);
  outside = kRouter;
  exchange(*c, *a);
  exchange(*a, *c);
  EXPECT_EQ(a->counters().sessions_closed + c->counters().sessions_closed, 0u);
}

/// Rule 4: a request that b has sent to c, which has the same key.
TEST_F(TranslationTest, ACallOfAnotherEndpointIsRefused) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kC);
  b->send();
  pass(*b);
  std::vector<std::byte> request;
  for (const Frame& each : seen) {
    if (each.to == kC && kind_of(each.bytes) == wire::FrameKind::association_request) request = each.bytes;
  }
  ASSERT_FALSE(request.empty());
  forward(kRouter, kA, request);
  pass(*a);
  EXPECT_EQ(sent_to(kRouter, wire::FrameKind::association_response), 0u);
  EXPECT_EQ(a->counters().refused_malformed, 1u);
}

/// Rule 1: b is known at its own address. Another process of the job has the same name behind the router.
TEST_F(TranslationTest, APeerAtItsListedAddressKeepsItsPlace) {
  network.drop = [this](const Packet& packet, const SocketAddress& to) {
    seen.push_back({packet.from, to, packet.bytes});
    return false;
  };
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  inject(kRouter, kA, request_of_twin(1));
  pass(*a, *b);
  EXPECT_EQ(sent_to(kRouter, wire::FrameKind::association_response), 0u);
  EXPECT_EQ(a->logged("peer " + kB.text() + " is refused: a router has replaced its address"), 1u);
  exchange(*a, *b);
  exchange(*b, *a);
  EXPECT_EQ(a->counters().sessions_closed + b->counters().sessions_closed, 0u);
}

/// Rule 5: a flood makes b look silent, and its session ends. Nobody takes its place meanwhile.
TEST_F(TranslationTest, SilenceGivesNobodyThePlaceOfAPeer) {
  network.drop = nullptr;
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  exchange(*a, *b);
  network.drop = [this](const Packet& packet, const SocketAddress& to) {
    seen.push_back({packet.from, to, packet.bytes});
    return packet.from == kB;
  };
  a->send();
  for (int i = 0; i < 700; ++i) {
    clock.advance(10ms);
    a->engine.poll();
    if (i % 10 == 0) inject(kRouter, kA, request_of_twin(static_cast<std::uint64_t>(i) + 1));
  }
  EXPECT_EQ(a->counters().sessions_closed, 1u);
  EXPECT_EQ(sent_to(kRouter, wire::FrameKind::association_response), 0u);
  network.drop = nullptr;
  a->receive();
  for (int i = 0; i < 400 && a->received.empty(); ++i) {
    if (i % 20 == 0) b->send();
    pass(*a, *b);
  }
  EXPECT_EQ(arrived(*a), 1u) << "its next call is heard";
}

/// Frames of an earlier incarnation that have not arrived yet, and that a host on the path sends later, from
/// the router and from elsewhere.
TEST_F(TranslationTest, LateFramesOfAnEarlierIncarnationEndNothing) {
  const auto a = node(kA, kB);
  auto b = node(kB, kA);
  exchange(*b, *a);
  std::vector<std::vector<std::byte>> late;
  on_the_way_out = [&](ConstBytes bytes) {
    late.emplace_back(bytes.begin(), bytes.end());
    return true;
  };
  b->send();
  for (int i = 0; i < 40; ++i) pass(*b);
  b.reset();
  on_the_way_out = nullptr;
  b = node(kB, kA, 1000);
  exchange(*b, *a);
  exchange(*a, *b);
  ASSERT_GT(late.size(), 2u);
  const std::uint64_t closed_before = a->counters().sessions_closed;
  for (const std::vector<std::byte>& each : late) {
    forward(kForged, kA, each);
    forward(kRouter, kA, each);
    pass(*a, *b);
  }
  seen.clear();
  exchange(*a, *b);
  exchange(*b, *a);
  EXPECT_EQ(a->counters().sessions_closed, closed_before);
  EXPECT_EQ(b->counters().sessions_closed, 0u);
  EXPECT_EQ(sent_to(kForged, wire::FrameKind::flow), 0u);
}

/// The peer that is reached over the router is asked over the router, and its answers count.
TEST_F(TranslationTest, KeepAlivesOfTheEndpointTakeTheSameWay) {
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*b, *a);
  exchange(*a, *b);
  seen.clear();
  a->send();
  for (int i = 0; i < 700; ++i) {  // b computes for longer than the peer timeout
    clock.advance(10ms);
    a->engine.poll();
  }
  EXPECT_GT(sent_to(kRouter, wire::FrameKind::keep_alive), 3u);
  EXPECT_EQ(sent_to(kB, wire::FrameKind::keep_alive), 0u);
  EXPECT_EQ(a->counters().sessions_closed, 0u);
  answers = false;
  for (int i = 0; i < 1000; ++i) {
    clock.advance(10ms);
    a->engine.poll();
  }
  EXPECT_EQ(a->counters().sessions_closed, 1u);
}

/// The peer is known at its own address, and the router begins to translate its answers. The peer computes,
/// so no frame of it proves the source.
TEST_F(TranslationTest, AnAnswerShowsThatThePeerLivesWhateverItsSourceIs) {
  closed = false;
  outside = kB;
  const auto a = node(kA, kB);
  const auto b = node(kB, kA);
  exchange(*a, *b);
  outside = kRouter;
  a->send();
  const auto compute = [&](int times) {
    for (int i = 0; i < times; ++i) {
      clock.advance(10ms);
      a->engine.poll();
    }
  };
  compute(700);
  EXPECT_EQ(a->counters().sessions_closed, 0u);
  EXPECT_EQ(sent_to(kRouter, wire::FrameKind::flow) + sent_to(kRouter, wire::FrameKind::keep_alive), 0u);
  answers = false;
  compute(1000);
  EXPECT_EQ(a->counters().sessions_closed, 1u);
}

// --- the table alone ---

class TranslatedRoutesTest : public ::testing::Test {
 protected:
  Association& add(std::uint8_t salt, std::vector<SocketAddress> addresses) {
    Party peer{Salt{salt, salt, salt, salt}, std::move(addresses)};
    Association* const added =
        table.add(std::make_unique<Association>(credentials.keys[0], Mode::auth, ours, std::move(peer)));
    EXPECT_NE(added, nullptr);
    return *added;
  }

  /// Whether the user gets a frame that the association has opened.
  bool gets(Association& association, const SocketAddress& from) {
    std::uint64_t keep_alives = network.carried + 1;
    return translation.user_gets(clock.now(), association, {from, {}, false}, keep_alives);
  }

  const Credentials credentials = test::credentials({kSecret}, Mode::auth);
  const Party ours{Salt{9}, {kA}};
  AssociationTable table;
  test::FakeClock clock;
  test::FakeNetwork network{clock, 1};
  test::FakeLink link{network, kA};
  test::FakeRandom random{1};
  test::FakeLog log;
  Counters counters;
  Translation translation{credentials, ours, table, link, {clock, random, log, counters}};
};

/// Rule 1: the association of the other process is older than that of the peer at the listed address.
TEST_F(TranslatedRoutesTest, AFrameOfAnotherProcessTakesNoListedAddress) {
  Association& twin = add(1, {kB});
  Association& peer = add(2, {kB});
  table.make_current(peer, kB);
  EXPECT_FALSE(gets(twin, kRouter));
  EXPECT_EQ(network.carried, 0u) << "it is not even asked";
  EXPECT_EQ(table.route(kB).current, &peer);
}

TEST_F(TranslatedRoutesTest, AnIncarnationThatIsOverNeverComesBack) {
  Association& former = add(1, {kB});
  EXPECT_TRUE(gets(former, kRouter));
  table.prove(former, *former.sources.find(kRouter, 0));
  Association& present = add(2, {kB});
  EXPECT_FALSE(gets(present, kRouter)) << "answers would be sealed for the former one";
  EXPECT_EQ(network.carried, 2u) << "both were asked";
  table.prove(present, *present.sources.find(kRouter, 0));
  EXPECT_TRUE(gets(present, kRouter));
  EXPECT_FALSE(gets(former, kForged));
  EXPECT_EQ(network.carried, 2u);
  EXPECT_EQ(table.route(kB).current, &present);
}

/// Only its late frames arrive, after those of its successor.
TEST_F(TranslatedRoutesTest, AnIncarnationThatWasNeverProvedDisplacesNoLaterOne) {
  Association& former = add(1, {kB});
  Association& present = add(2, {kB});
  Association& next = add(3, {kB});
  table.prove(present, present.sources.note(kRouter, 0));
  EXPECT_FALSE(gets(former, kForged));
  EXPECT_EQ(network.carried, 0u) << "it is not even asked";
  EXPECT_FALSE(gets(next, kForged));
  EXPECT_EQ(network.carried, 1u) << "a later one is asked";
}

/// The later incarnation has proved one address, so it is asked at the other one as well.
TEST_F(TranslatedRoutesTest, ALaterIncarnationMayProveTheOtherAddresses) {
  Association& former = add(1, {kB, kC});
  Association& present = add(2, {kB, kC});
  table.make_current(former, kB);
  EXPECT_FALSE(gets(present, kRouter));
  EXPECT_EQ(network.carried, 0u) << "nothing shows that the former one is over";
  ObservedSource& source = present.sources.note(kForged, 1);
  source.listed = 1;
  table.prove(present, source);
  EXPECT_FALSE(gets(present, kRouter)) << "answers would be sealed for the former one";
  EXPECT_EQ(network.carried, 1u) << "it is asked";
}

/// Two hosts may list the same further address, for example that of a bridge.
TEST_F(TranslatedRoutesTest, AnotherPeerWithACommonAddressKeepsItsPlace) {
  Association& peer = add(1, {kB, kC});
  Association& other = add(2, {test::node_name(5), kC});
  table.make_current(peer, kB);
  ObservedSource& source = other.sources.note(kRouter, 0);
  source.listed = 1;
  table.prove(other, source);
  EXPECT_FALSE(table.route(kB).current->superseded);
}

/// A host on the path keeps the response of an incarnation, and releases it once that has a successor.
TEST_F(TranslatedRoutesTest, TheRequestsToAnIncarnationThatIsOverAreOver) {
  Association& former = add(1, {kB, kC});
  Association& present = add(2, {kB, kC});
  table.make_current(former, kB);
  table.route(kC).request = 7;
  table.prove(present, present.sources.note(kRouter, 0));
  EXPECT_EQ(table.route(kC).request, 0u);
}

TEST_F(TranslatedRoutesTest, ASuccessorInheritsTheWayOfTheRequest) {
  Association& former = add(1, {kB, kC});
  Association& present = add(2, {kB});
  table.make_current(former, kB);
  table.prove(former, former.sources.note(kRouter, 1));
  EXPECT_FALSE(translation.succeed(present, former, kC, 1)) << "the successor does not list this address";
  EXPECT_EQ(table.route(kB).current, &former);
  EXPECT_TRUE(translation.succeed(present, former, kB, 1));
  EXPECT_EQ(table.route(kB).current, &present);
  EXPECT_NE(present.sources.way_to(0, 1), nullptr);
  EXPECT_FALSE(translation.succeed(former, present, kB, 1)) << "an earlier incarnation never comes back";
  Association& next = add(3, {kB});
  EXPECT_TRUE(translation.succeed(next, present, kB, 0));
  EXPECT_EQ(table.route(kB).current, &next) << "over this link the request went to the listed address";
  EXPECT_TRUE(next.sources.empty());
}

TEST_F(TranslatedRoutesTest, AnOwnAddressIsNoSource) {
  Association& peer = add(1, {kB});
  EXPECT_FALSE(gets(peer, kA));
  EXPECT_FALSE(translation.may_use(peer, {kRouter, {}, false, 0, true})) << "routers forward only IP";
}

/// Nothing shows which of the addresses the router translates.
TEST_F(TranslatedRoutesTest, EachQuestionNamesTheNextListedAddress) {
  Association& peer = add(1, {kB, kC});
  std::vector<SocketAddress> named;
  network.drop = [&](const Packet& packet, const SocketAddress&) {
    KeepAliveAnswer answer;
    for (const SocketAddress& address : {kB, kC}) {
      if (answer_keep_alive(credentials, packet.bytes, address, answer)) named.push_back(address);
    }
    return true;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(gets(peer, kRouter));
    EXPECT_TRUE(gets(peer, kRouter)) << "not asked again at once";
    clock.advance(100ms);
  }
  EXPECT_EQ(named, (std::vector{kB, kC, kB}));
}

/// Rule 3: the caller lists the address of c.
TEST_F(TranslatedRoutesTest, NoAddressOfAnUninvolvedPeerChangesItsRoute) {
  Association& c = add(3, {kC});
  table.make_current(c, kC);
  Association& caller = add(2, {kB, kC});
  table.prove(caller, caller.sources.note(kRouter, 0));
  EXPECT_EQ(table.route(kB).current, &caller);
  EXPECT_EQ(table.route(kC).current, &c);
  table.make_current(caller, kB);
  EXPECT_EQ(table.route(kC).current, &c) << "it is the name of another peer";
  table.make_current(caller, kC);
  EXPECT_EQ(table.route(kC).current, &caller) << "its frame has come from there";
}

TEST_F(TranslatedRoutesTest, ASourceBelongsToThePeerThatHasProvedItLast) {
  Association& one = add(1, {kB});
  Association& other = add(2, {kC});
  table.prove(one, one.sources.note(kRouter, 0));
  EXPECT_EQ(table.behind(kRouter), &one);
  table.prove(other, other.sources.note(kRouter, 0));
  EXPECT_EQ(table.behind(kRouter), &other);
  EXPECT_FALSE(one.sources.any_used());
}

TEST_F(TranslatedRoutesTest, ARouterThatChangesItsPortForEverTakesBoundedMemory) {
  Association& peer = add(1, {kB});
  std::size_t kept = 0;
  for (std::uint16_t port = 1; port <= 1000; ++port)
    table.prove(peer, peer.sources.note(kRouter.with_port(port), 0));
  for (std::uint16_t port = 1; port <= 1000; ++port)
    kept += table.behind(kRouter.with_port(port)) != nullptr ? 1 : 0;
  EXPECT_LE(kept, 2 * ObservedSources::kMax);
  EXPECT_EQ(table.behind(kRouter.with_port(1000)), &peer);
}

TEST_F(TranslatedRoutesTest, AListedAddressIsNoSource) {
  Association& one = add(1, {kB});
  table.prove(one, one.sources.note(kC, 0));
  Association& c = add(3, {kC});
  EXPECT_FALSE(table.lists_it(kC, one)) << "nothing has shown that it is alive";
  table.make_current(c, kC);
  EXPECT_TRUE(table.lists_it(kC, one));
  EXPECT_EQ(table.behind(kC), nullptr);
  EXPECT_FALSE(one.sources.any_used());
}

TEST_F(TranslatedRoutesTest, AnIdFindsWhatIsThere) {
  Association& one = add(1, {kB});
  EXPECT_EQ(table.find_by_id(one.peer_id()), &one);
  EXPECT_EQ(table.find_by_id(one.peer_id() + 1), nullptr);
}

TEST(ObservedSources, AtMostOneIsInUseForEachLinkAndAddress) {
  ObservedSources sources;
  for (std::uint16_t port = 1; port < 100; ++port) {
    ObservedSource& noted = sources.note(kRouter.with_port(port), 0);
    noted.proven = true;
    sources.use(noted);
    ASSERT_NE(sources.way_to(0, 0), nullptr);
    EXPECT_EQ(sources.way_to(0, 0)->address.port(), port);
  }
  EXPECT_EQ(sources.way_to(0, 1), nullptr);
  EXPECT_EQ(sources.find(kRouter.with_port(1), 0), nullptr) << "there would be too many";
  sources.use_listed(0, 1);
  EXPECT_TRUE(sources.any_used());
  sources.use_listed(0, 0);
  EXPECT_FALSE(sources.any_used());
}

TEST(ObservedSources, ASourceInUseOutlivesThoseThatHaveProvedNothing) {
  ObservedSources sources;
  ObservedSource& proven = sources.note(kRouter, 0);
  proven.proven = true;
  sources.use(proven);
  for (std::uint16_t port = 1; port < 100; ++port) sources.note(kForged.with_port(port), 0);
  ASSERT_NE(sources.way_to(0, 0), nullptr);
  EXPECT_EQ(sources.way_to(0, 0)->address, kRouter);
}

}  // namespace
}  // namespace cluster::seal

// Connections of whole engines over a network that loses, repeats and delays frames.
#include "engine/connection_endpoint.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/node.h"

namespace cluster::engine {
namespace {

using connection::ConnectionEnd;
using connection::ConnectRequest;

const SocketAddress kPassive = test::node_name(1), kAsker = test::node_name(2),
                    kAcceptor = test::node_name(3), kStranger = test::node_name(4);
constexpr std::uint64_t kId = 4711;

struct End final : connection::ConnectionListener {
  End(test::FakeNetwork& network, const SocketAddress& name, std::uint64_t epoch,
      protocol::SharedReceives* shared = nullptr)
      : node(network, name, name, epoch, nullptr, test::node_settings(), {.enabled = false}) {
    node.engine.open_connection(static_cast<connection::ConnectionListener&>(*this));
    node.engine.attach(node.engine.connection_addresses(),
                       {.tx_queue = &node.sent, .rx_queue = &node.received, .shared_receives = shared});
  }
  ~End() { closing = true; }
  void connected(ConstBytes data) override {
    EXPECT_FALSE(is_connected);
    is_connected = true;
    answer.assign(reinterpret_cast<const char*>(data.data()), data.size());
  }
  void refused(Status cause, ConstBytes data) override {
    failure = cause;
    answer.assign(reinterpret_cast<const char*>(data.data()), data.size());
  }
  void ended(const SocketAddress&, Status cause) override {
    EXPECT_TRUE(closing || !end) << "told twice";
    end = cause;
    if (reads_at_end) received_before_end = received();
  }
  void connect() {
    node.engine.with_connection([](ConnectionEndpoint& all) { all.connection().connect(kPassive, kId, {}); });
  }
  void take(const ConnectRequest& request) {
    node.engine.with_connection(
        [&](ConnectionEndpoint& all) { all.connection().set_asker(request.asker, request.id); });
  }
  void accept(const ConnectRequest& request) {
    node.engine.with_connection([&](ConnectionEndpoint& all) {
      if (all.connection().state() == ConnectionEnd::State::idle)
        all.connection().set_asker(request.asker, request.id);
      all.connection().accept(as_bytes("welcome", 7));
    });
  }
  /// Posts a receive for a long message, or sends one.
  void receive_long() {
    const Bytes slice(long_message);
    EXPECT_EQ(node.engine.receive({.slices = {&slice, 1}, .from = ConnectionEndpoint::kPeer}), Status::ok);
  }
  void send_long() {
    const ConstBytes slice(long_message);
    const protocol::SendOp op{.slices = {&slice, 1}, .length = slice.size(), .to = ConnectionEndpoint::kPeer};
    EXPECT_EQ(node.engine.send(op), Status::ok);
  }
  /// The outcomes of sends, oldest first.
  std::vector<Status> sent() { return test::take_outcomes(node.sent); }
  void shut_down() {
    node.engine.with_connection([](ConnectionEndpoint& all) { all.connection().shut_down(); });
  }
  /// Posts a receive from the peer.
  void receive() {
    const Bytes slice = as_bytes(&node.got, sizeof node.got);
    EXPECT_EQ(node.engine.receive({.slices = {&slice, 1}, .from = ConnectionEndpoint::kPeer}), Status::ok);
  }
  /// The outcomes of receives, oldest first.
  std::vector<Status> received() { return test::take_outcomes(node.received); }

  bool closing = false;
  bool is_connected = false;
  std::string answer;
  std::optional<Status> failure, end;
  bool reads_at_end = false;
  std::vector<Status> received_before_end;  ///< if `reads_at_end`
  std::vector<std::byte> long_message = std::vector<std::byte>(1 << 20);
  test::Node node;
};

struct Passive final : connection::RequestListener {
  explicit Passive(test::FakeNetwork& network)
      : node(network, kPassive, kPassive, 1, nullptr, test::node_settings(), {.enabled = false}) {
    node.engine.open_connection(static_cast<connection::RequestListener&>(*this));
    node.engine.attach(node.engine.connection_addresses(), {});
  }
  bool requested(const ConnectRequest& request, ConstBytes) override {
    requests.push_back(request);
    return true;
  }
  void hand_over(const SocketAddress& taker) {
    node.engine.with_connection(
        [&](ConnectionEndpoint& all) { all.listener().hand_over(requests.front(), taker); });
  }
  std::vector<ConnectRequest> requests;
  test::Node node;
};

class ConnectionEndpointTest : public test::EngineTest {
 protected:
  ConnectionEndpointTest() {
    asker_.emplace(network, kAsker, 2), acceptor_.emplace(network, kAcceptor, 3), passive_.emplace(network);
  }

  /// Lets all engines take turns, until `done` or for 30 seconds of the network's time.
  template <typename Done>
  bool run(Done&& done) {
    for (int i = 0; i < 300000; ++i) {
      clock.advance(100us);
      for (std::optional<End>* each : {&asker_, &acceptor_}) {
        if (*each) (*each)->node.engine.poll();
      }
      if (passive_) passive_->node.engine.poll();
      if (stranger_ != nullptr) stranger_->engine.poll();
      if (done()) return true;
    }
    return false;
  }
  void connect_both() {
    asker_->connect();
    ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
    acceptor_->accept(passive_->requests.front());
    ASSERT_TRUE(run([&] { return asker_->is_connected; }));
  }

  protocol::SharedReceives shared_;
  std::optional<End> asker_, acceptor_;
  std::optional<Passive> passive_;
  std::unique_ptr<test::Node> stranger_;
};

TEST_F(ConnectionEndpointTest, TwoEndsConnectAndExchangeMessages) {
  asker_->receive();  // before there is a peer
  connect_both();
  EXPECT_TRUE(acceptor_->is_connected);
  EXPECT_EQ(asker_->answer, "welcome");
  acceptor_->receive();
  asker_->node.send();
  acceptor_->node.word = 99;
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return asker_->node.got == 100 && acceptor_->node.got == 1; }));
  EXPECT_EQ(passive_->requests.size(), 1u);
}

TEST_F(ConnectionEndpointTest, ThePassiveSideMaySendAtOnce) {
  asker_->receive();
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  acceptor_->accept(passive_->requests.front());
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return asker_->node.got == 1; })) << "it may arrive in the turn of the accept";
}

TEST_F(ConnectionEndpointTest, LostAndRepeatedFramesChangeNothing) {
  network.conditions = {.loss = 0.3, .duplicate = 0.3, .jitter = 2ms};
  asker_->receive();
  connect_both();
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return asker_->node.got == 1; }));
  asker_->shut_down();
  EXPECT_TRUE(run([&] { return acceptor_->end == Status::ok; }));
  EXPECT_EQ(passive_->requests.size(), 1u);
}

TEST_F(ConnectionEndpointTest, AStrangersMessageMatchesNoReceive) {
  asker_->receive();
  connect_both();
  stranger_ = std::make_unique<test::Node>(network, kStranger, kAsker, 9);
  stranger_->word = 665;
  stranger_->send();
  run([n = 0]() mutable { return ++n == 3000; });
  EXPECT_EQ(asker_->node.got, 0u);
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return asker_->node.got == 1; }));
}

TEST_F(ConnectionEndpointTest, OnlyThePeersMessagesTakeSharedReceives) {
  const auto add = [&](std::uint64_t& word) {
    const Bytes slice = as_bytes(&word, sizeof word);
    const auto receive = shared_.add({.slices = {&slice, 1}});
    asker_->node.engine.take_shared(receive);
  };
  asker_.reset();
  asker_.emplace(network, kAsker, 5, &shared_);
  stranger_ = std::make_unique<test::Node>(network, kStranger, kAsker, 9);
  stranger_->word = 665;
  stranger_->send();
  std::uint64_t first = 0, second = 0;
  add(first);
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  acceptor_->accept(passive_->requests.front());
  acceptor_->node.send();
  ASSERT_TRUE(run([&] { return first != 0; })) << "the message may arrive before its sender is the peer";
  EXPECT_EQ(first, 1u);
  stranger_->send();
  add(second);
  run([n = 0]() mutable { return ++n == 3000; });
  EXPECT_EQ(second, 0u) << "a message of the stranger";
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return second == 2; }));
}

TEST_F(ConnectionEndpointTest, AShutdownReachesTheOtherEndAndCancelsReceives) {
  connect_both();
  acceptor_->receive();
  acceptor_->receive();
  asker_->receive();
  asker_->node.send();
  asker_->shut_down();
  EXPECT_EQ(asker_->received(), (std::vector{Status::canceled})) << "before the call returns";
  EXPECT_TRUE(run([&] { return acceptor_->end == Status::ok; }));
  EXPECT_EQ(acceptor_->received(), (std::vector{Status::ok, Status::canceled}));
  EXPECT_EQ(acceptor_->node.got, 1u);
}

TEST_F(ConnectionEndpointTest, BothMayShutDownAtOnce) {
  connect_both();
  asker_->shut_down();
  acceptor_->shut_down();
  run([n = 0]() mutable { return ++n == 3000; });
  EXPECT_EQ(asker_->end, Status::ok);
  EXPECT_EQ(acceptor_->end, Status::ok);
}

TEST_F(ConnectionEndpointTest, ARejectArrives) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  passive_->node.engine.with_connection(
      [&](ConnectionEndpoint& all) { all.listener().reject(passive_->requests.front(), as_bytes("no", 2)); });
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  EXPECT_EQ(asker_->failure, Status::refused);
  EXPECT_EQ(asker_->answer, "no");
}

TEST_F(ConnectionEndpointTest, WithoutAPassiveEndpointTheAttemptFailsSoon) {
  passive_.reset();
  network.absent = kPassive;
  asker_->connect();
  const Time begin = clock.now();
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  EXPECT_EQ(asker_->failure, Status::refused);
  EXPECT_LT(clock.now() - begin, 1s);
}

TEST_F(ConnectionEndpointTest, ASilentPassiveEndpointEndsTheAttempt) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  network.conditions.blackout = true;
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); })) << "although nothing is under way";
}

TEST_F(ConnectionEndpointTest, ASilentPeerEndsTheConnectionAtBothEnds) {
  connect_both();
  network.conditions.blackout = true;
  ASSERT_TRUE(run([&] { return asker_->end && acceptor_->end; })) << "although nothing is under way";
  EXPECT_NE(asker_->end, Status::ok);
  EXPECT_NE(acceptor_->end, Status::ok);
}

TEST_F(ConnectionEndpointTest, AnEndThatClosesWithoutAWordIsNoticed) {
  connect_both();
  asker_.reset();
  EXPECT_TRUE(run([&] { return acceptor_->end.has_value(); }));
}

TEST_F(ConnectionEndpointTest, ThePassiveEndpointMayCloseAfterTheRequestIsTaken) {
  asker_->receive();
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  const ConnectRequest request = passive_->requests.front();
  acceptor_->take(request);
  passive_->hand_over(kAcceptor);
  passive_.reset();
  run([n = 0]() mutable { return ++n == 3000; });
  EXPECT_FALSE(asker_->failure);
  acceptor_->accept(request);
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return asker_->node.got == 1; }));
  EXPECT_TRUE(asker_->is_connected);
}

TEST_F(ConnectionEndpointTest, APassiveEndpointThatClosesWithoutAnAnswerRefuses) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  passive_.reset();
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  EXPECT_EQ(asker_->failure, Status::refused);
}

TEST_F(ConnectionEndpointTest, ATakerThatClosesWithoutAnAnswerRefuses) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  acceptor_->take(passive_->requests.front());
  passive_->hand_over(kAcceptor);
  run([n = 0]() mutable { return ++n == 3000; });
  EXPECT_FALSE(asker_->failure);
  acceptor_.reset();
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  EXPECT_EQ(asker_->failure, Status::refused);
}

TEST_F(ConnectionEndpointTest, ATakerThatFallsSilentEndsTheAttempt) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  acceptor_->take(passive_->requests.front());
  passive_->hand_over(kAcceptor);
  run([n = 0]() mutable { return ++n == 3000; });
  network.absent = kAcceptor;
  acceptor_.reset();
  EXPECT_TRUE(run([&] { return asker_->failure.has_value(); })) << "although the passive endpoint lives";
}

TEST_F(ConnectionEndpointTest, AnotherEndpointAtTheTakersAddressRefuses) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  passive_->hand_over(kAcceptor);  // which knows nothing of the request
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  EXPECT_EQ(asker_->failure, Status::refused);
}

TEST_F(ConnectionEndpointTest, AnAcceptThatReachesAnotherEndpointEndsTheConnection) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  asker_.reset();
  asker_.emplace(network, kAsker, 5);  // the next endpoint at this address
  acceptor_->accept(passive_->requests.front());
  EXPECT_TRUE(acceptor_->is_connected);
  acceptor_->send_long();
  EXPECT_TRUE(run([&] { return acceptor_->end.has_value(); }));
  EXPECT_EQ(acceptor_->end, Status::refused);
  EXPECT_TRUE(run([&] { return !acceptor_->sent().empty(); }));
  EXPECT_FALSE(asker_->is_connected);
}

TEST_F(ConnectionEndpointTest, AnAcceptAfterTheAskerHasGivenUpEndsTheConnection) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  const ConnectRequest request = passive_->requests.front();
  acceptor_->take(request);
  passive_->hand_over(kAcceptor);
  run([n = 0]() mutable { return ++n == 3000; });
  asker_->shut_down();
  acceptor_->accept(request);
  EXPECT_TRUE(run([&] { return acceptor_->end.has_value(); }));
  EXPECT_EQ(acceptor_->end, Status::ok);
  EXPECT_FALSE(asker_->is_connected);
}

TEST_F(ConnectionEndpointTest, MessagesOfAnEarlierEndpointAtThePeersAddressMatchNoReceive) {
  acceptor_.reset();
  asker_->receive();
  stranger_ = std::make_unique<test::Node>(network, kAcceptor, kAsker, 3);
  stranger_->word = 665;
  stranger_->send();
  run([n = 0]() mutable { return ++n == 3000; });
  stranger_.reset();
  acceptor_.emplace(network, kAcceptor, 9);
  connect_both();
  acceptor_->node.send();
  EXPECT_TRUE(run([&] { return asker_->node.got != 0; }));
  EXPECT_EQ(asker_->node.got, 1u);
}

TEST_F(ConnectionEndpointTest, AnEndpointThatIsNoPassiveOneRefuses) {
  passive_.reset();
  stranger_ = std::make_unique<test::Node>(network, kPassive, kAsker, 9);
  asker_->connect();
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  EXPECT_EQ(asker_->failure, Status::refused);
}

TEST_F(ConnectionEndpointTest, APassiveEndpointForgetsThoseThatAsked) {
  asker_->connect();
  ASSERT_TRUE(run([&] { return !passive_->requests.empty(); }));
  passive_->node.engine.with_connection(
      [&](ConnectionEndpoint& all) { all.listener().reject(passive_->requests.front(), {}); });
  ASSERT_TRUE(run([&] { return asker_->failure.has_value(); }));
  const transport::AddressTable& kept = passive_->node.engine.connection_addresses();
  EXPECT_TRUE(run([&] { return !kept.find(kAsker); }));
  EXPECT_TRUE(kept.find(kPassive));
}

TEST_F(ConnectionEndpointTest, LongMessagesArriveBeforeTheShutdown) {
  connect_both();
  acceptor_->reads_at_end = true;
  acceptor_->receive_long();
  acceptor_->receive_long();
  asker_->send_long();
  asker_->shut_down();
  ASSERT_TRUE(run([&] { return acceptor_->end.has_value(); }));
  EXPECT_EQ(acceptor_->end, Status::ok);
  EXPECT_EQ(acceptor_->received_before_end, (std::vector{Status::ok, Status::canceled}));
  std::vector<Status> sent;
  EXPECT_TRUE(run([&] { return !(sent = asker_->sent()).empty(); }));
  EXPECT_EQ(sent, std::vector{Status::ok});
}

TEST_F(ConnectionEndpointTest, AShutdownEndsWhatIsUnderWay) {
  connect_both();
  asker_->send_long();  // nobody receives it
  acceptor_->send_long();
  run([n = 0]() mutable { return ++n == 3000; });
  asker_->shut_down();
  ASSERT_TRUE(run([&] { return acceptor_->end.has_value(); }));
  std::vector<Status> here, there;
  EXPECT_TRUE(run([&] { return !(here = asker_->sent()).empty(); }));
  EXPECT_TRUE(run([&] { return !(there = acceptor_->sent()).empty(); }));
  EXPECT_EQ(here, std::vector{Status::canceled});
  EXPECT_EQ(there, std::vector{Status::reset});
  EXPECT_EQ(asker_->node.logged("before operations with it were complete"), 0u) << "this side wanted it";
}

TEST_F(ConnectionEndpointTest, AShutdownArrivesEvenIfThereIsNoCreditLeft) {
  connect_both();
  for (int i = 0; i < 5000; ++i) {
    asker_->node.send();
    if (i % 100 == 0) run([n = 0]() mutable { return ++n == 10; });
  }
  asker_->shut_down();
  EXPECT_TRUE(run([&] { return acceptor_->end == Status::ok; }));
}

}  // namespace
}  // namespace cluster::engine

// The states of a connection, with a courier that only notes what is asked of it.
#include "connection/connection_end.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "connection/passive_end.h"

namespace cluster::connection {
namespace {

using State = ConnectionEnd::State;

SocketAddress name(int last) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, 9228);
}
const SocketAddress kPassive = name(1), kAsker = name(2), kAcceptor = name(3), kStranger = name(4);
constexpr std::uint64_t kId = 77;

std::string text(ConstBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

class ConnectionTest : public ::testing::Test,
                       public Courier,
                       public ConnectionListener,
                       public RequestListener {
 public:
  void send(const SocketAddress& to, const Message& message) override {
    note("send " + std::to_string(static_cast<int>(message.kind)) + " " + to.text() + " " +
         text(message.data));
  }
  void watch(const SocketAddress& peer) override { note("watch " + peer.text()); }
  void end_watch() override { note("end watch"); }
  void set_peer(const SocketAddress& peer) override { note("peer " + peer.text()); }
  void cancel_receives() override { note("cancel"); }
  bool receiving(const SocketAddress& /*peer*/) override { return is_receiving; }
  void leave(const SocketAddress& peer) override { note("leave " + peer.text()); }
  void connected(ConstBytes data) override { note("connected " + text(data)); }
  void refused(Status cause, ConstBytes data) override {
    note("refused " + std::string(describe(cause)) + " " + text(data));
  }
  void ended(const SocketAddress& /*peer*/, Status cause) override {
    note(std::string("ended ") + (cause == Status::ok ? "" : describe(cause)));
  }
  bool requested(const ConnectRequest& request, ConstBytes data) override {
    note("requested " + request.asker.text() + " " + text(data));
    return takes_requests;
  }

  void note(std::string what) { log.push_back(std::move(what)); }
  /// What was asked of the courier and reported since the last call.
  std::vector<std::string> taken() { return std::exchange(log, {}); }
  static ConstBytes data(const char* words) { return as_bytes(words, std::char_traits<char>::length(words)); }
  void connect() {
    end.connect(kPassive, kId, data("please"));
    log.clear();
  }
  void make_active() {
    connect();
    end.arrived(kAcceptor, {MessageKind::accept, kId, {}});
    log.clear();
  }

  using Log = std::vector<std::string>;
  Log log;
  bool takes_requests = true;
  bool is_receiving = false;
  ConnectionEnd end{*this, *this};
  const std::string passive = kPassive.text(), asker = kAsker.text(), acceptor = kAcceptor.text();
};

TEST_F(ConnectionTest, TheActiveSideAsksAndTakesTheAcceptorAsItsPeer) {
  end.connect(kPassive, kId, data("please"));
  EXPECT_EQ(taken(), (Log{"watch " + passive, "send 1 " + passive + " please"}));
  EXPECT_EQ(end.state(), State::connecting);
  end.arrived(kAcceptor, {MessageKind::accept, kId, data("yes")});
  EXPECT_EQ(taken(),
            (Log{"end watch", "leave " + passive, "peer " + acceptor, "watch " + acceptor, "connected yes"}));
  EXPECT_EQ(end.state(), State::connected);
  EXPECT_EQ(end.peer(), kAcceptor);
}

TEST_F(ConnectionTest, ThePassiveSideIsConnectedAtOnce) {
  end.set_asker(kAsker, kId);
  EXPECT_EQ(taken(), (Log{"peer " + asker}));
  end.accept(data("yes"));
  EXPECT_EQ(taken(), (Log{"watch " + asker, "send 2 " + asker + " yes", "connected "}));
}

TEST_F(ConnectionTest, ARejectBringsItsData) {
  connect();
  end.arrived(kPassive, {MessageKind::reject, kId, data("no")});
  EXPECT_EQ(taken(), (Log{"leave " + passive, "end watch", "cancel",
                          std::string("refused ") + describe(Status::refused) + " no"}));
  EXPECT_EQ(end.state(), State::over);
}

TEST_F(ConnectionTest, MessagesOfAnotherAttemptAreIgnored) {
  end.arrived(kStranger, {MessageKind::accept, 0, {}});
  connect();
  for (const MessageKind kind : {MessageKind::accept, MessageKind::reject, MessageKind::shutdown})
    end.arrived(kStranger, {kind, kId + 1, {}});
  end.arrived(kStranger, {MessageKind::shutdown, kId, {}});
  EXPECT_EQ(taken(), Log{});
  EXPECT_EQ(end.state(), State::connecting);
}

TEST_F(ConnectionTest, ASecondAcceptIsAnswered) {
  make_active();
  end.arrived(kAcceptor, {MessageKind::accept, kId, {}});
  EXPECT_EQ(taken(), Log{});
  end.arrived(kStranger, {MessageKind::accept, kId, {}});
  EXPECT_EQ(taken(), (Log{"send 4 " + kStranger.text() + " "}));
  EXPECT_EQ(end.state(), State::connected);
}

TEST_F(ConnectionTest, AnAcceptThatComesTooLateIsAnswered) {
  connect();
  EXPECT_TRUE(end.shut_down());
  EXPECT_EQ(taken(), (Log{"end watch", "cancel", "ended "}));
  end.arrived(kAcceptor, {MessageKind::accept, kId, {}});
  EXPECT_EQ(taken(), (Log{"send 4 " + acceptor + " "}));
  EXPECT_FALSE(end.shut_down());
}

TEST_F(ConnectionTest, AnAcceptAfterATakenRequestThatComesTooLateIsAnswered) {
  connect();
  end.arrived(kPassive, {MessageKind::taken, kId, encode_address(kAcceptor)});
  EXPECT_TRUE(end.shut_down());
  taken();
  end.arrived(kAcceptor, {MessageKind::accept, kId, {}});
  EXPECT_EQ(taken(), (Log{"send 4 " + acceptor + " "})) << "else the acceptor would stay connected";
}

TEST_F(ConnectionTest, EachSideMayShutDown) {
  make_active();
  EXPECT_TRUE(end.shut_down());
  EXPECT_EQ(taken(), (Log{"send 4 " + acceptor + " ", "end watch", "cancel", "ended "}));
  end.arrived(kAcceptor, {MessageKind::shutdown, kId, {}});
  EXPECT_EQ(taken(), (Log{"leave " + acceptor})) << "the peer has nothing more to say";
  end.peer_lost({kAcceptor, Status::reset, true});
  EXPECT_EQ(taken(), (Log{"leave " + acceptor}))
      << "both at once end it once, and to leave twice is harmless";
}

TEST_F(ConnectionTest, ThePeerMayShutDown) {
  make_active();
  end.arrived(kPassive, {MessageKind::shutdown, kId, {}});
  EXPECT_EQ(taken(), Log{}) << "that is no peer any more";
  end.arrived(kAcceptor, {MessageKind::shutdown, kId, {}});
  EXPECT_EQ(taken(), (Log{"send 4 " + acceptor + " ", "end watch", "cancel", "ended "}));
  EXPECT_FALSE(end.shut_down());
}

TEST_F(ConnectionTest, AShutdownByThePeerWaitsForItsLongMessages) {
  make_active();
  is_receiving = true;
  end.arrived(kAcceptor, {MessageKind::shutdown, kId, {}});
  end.try_to_end();
  EXPECT_EQ(taken(), Log{});
  EXPECT_EQ(end.state(), State::ending);
  is_receiving = false;
  end.try_to_end();
  EXPECT_EQ(taken(), (Log{"send 4 " + acceptor + " ", "end watch", "cancel", "ended "}));
}

TEST_F(ConnectionTest, APeerMayCloseAfterItsShutdown) {
  make_active();
  is_receiving = true;
  end.arrived(kAcceptor, {MessageKind::shutdown, kId, {}});
  end.peer_lost({kAcceptor, Status::reset, true});
  EXPECT_EQ(taken(), (Log{"end watch", "cancel", "ended "})) << "it is no loss";
}

TEST_F(ConnectionTest, ALostPeerEndsTheConnection) {
  make_active();
  end.peer_lost({kPassive, Status::ended, false});
  EXPECT_EQ(taken(), Log{});
  end.peer_lost({kAcceptor, Status::ended, false});
  EXPECT_EQ(taken(), (Log{"end watch", "cancel", std::string("ended ") + describe(Status::ended),
                          "leave " + acceptor}));
}

TEST_F(ConnectionTest, ALostPassiveEndpointEndsTheAttempt) {
  connect();
  end.peer_lost({kPassive, Status::stuck, false});
  EXPECT_EQ(taken(), (Log{"end watch", "cancel", std::string("refused ") + describe(Status::stuck) + " "}));
}

TEST_F(ConnectionTest, APassiveEndpointThatClosesOrRestartsWithoutAWordRefuses) {
  for (const bool orderly : {true, false}) {
    connect();
    end.peer_lost({kPassive, Status::reset, orderly});
    EXPECT_EQ(taken(),
              (Log{"end watch", "cancel", std::string("refused ") + describe(Status::refused) + " "}));
  }
}

TEST_F(ConnectionTest, WhoeverTakesTheRequestOwesTheAnswer) {
  const AddressBytes taker = encode_address(kAcceptor);
  connect();
  end.arrived(kPassive, {MessageKind::taken, kId, data("no address")});
  EXPECT_EQ(taken(), Log{});
  end.arrived(kPassive, {MessageKind::taken, kId, taker});
  EXPECT_EQ(taken(), (Log{"watch " + acceptor, "leave " + passive, "send 6 " + acceptor + " "}));
  end.arrived(kPassive, {MessageKind::taken, kId, taker});
  end.peer_lost({kPassive, Status::reset, true});
  EXPECT_EQ(taken(), Log{}) << "the passive endpoint may close";
  end.arrived(kAcceptor, {MessageKind::accept, kId, data("yes")});
  EXPECT_EQ(taken(), (Log{"end watch", "peer " + acceptor, "watch " + acceptor, "connected yes"}));
  end.arrived(kPassive, {MessageKind::taken, kId, encode_address(kStranger)});
  EXPECT_EQ(taken(), Log{});
}

TEST_F(ConnectionTest, IfTheTakerEndsTheAttemptFails) {
  connect();
  end.arrived(kPassive, {MessageKind::taken, kId, encode_address(kAcceptor)});
  log.clear();
  end.peer_lost({kAcceptor, Status::ended, false});
  EXPECT_EQ(taken(), (Log{"end watch", "cancel", std::string("refused ") + describe(Status::refused) + " "}));
}

TEST_F(ConnectionTest, AClaimAfterTheEndIsRejected) {
  end.set_asker(kAsker, kId);
  end.arrived(kAsker, {MessageKind::claim, kId, {}});
  EXPECT_EQ(taken(), (Log{"peer " + asker}));
  end.shut_down();
  log.clear();
  end.arrived(kAsker, {MessageKind::claim, kId, {}});
  EXPECT_EQ(taken(), (Log{"send 3 " + asker + " "}));
  EXPECT_FALSE(end.expects(kId + 1));
}

TEST_F(ConnectionTest, AnEndpointThatClosesWithoutAcceptingRejects) {
  end.set_asker(kAsker, kId);
  log.clear();
  EXPECT_TRUE(end.shut_down());
  EXPECT_EQ(taken(), (Log{"send 3 " + asker + " ", "end watch", "cancel", "ended "}));
}

TEST_F(ConnectionTest, AListenerReportsRequestsOrRejectsThem) {
  PassiveEnd listener(*this, *this);
  listener.arrived(kAsker, {MessageKind::accept, kId, {}});
  EXPECT_EQ(taken(), Log{});
  listener.arrived(kAsker, {MessageKind::request, kId, data("please")});
  EXPECT_EQ(taken(), (Log{"requested " + asker + " please"}));
  listener.arrived(kAsker, {MessageKind::claim, kId, {}});
  EXPECT_EQ(taken(), (Log{"send 3 " + asker + " "})) << "it has the port of an endpoint that has ended";
  listener.hand_over({kAsker, kId}, kAcceptor);
  EXPECT_EQ(taken(), (Log{"send 5 " + asker + " " + text(encode_address(kAcceptor))}));
  takes_requests = false;
  listener.arrived(kAsker, {MessageKind::request, kId, {}});
  EXPECT_EQ(taken(), (Log{"requested " + asker + " ", "send 3 " + asker + " "}));
}

}  // namespace
}  // namespace cluster::connection

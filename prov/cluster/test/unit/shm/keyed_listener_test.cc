// Rings between endpoints that have keys: an endpoint with another key, or none, neither finds a listener nor is let
// in, and nothing is written for a process that only holds the name of a peer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "shm/hello.h"
#include "shm/ring_listener.h"
#include "support/seal_keys.h"
#include "unit/shm/ring_memory.h"

namespace cluster::shm {
namespace {

SocketAddress fresh_keyed_name() {
  static std::uint16_t next = static_cast<std::uint16_t>(::getpid() * 16);
  if (next == 0) ++next;
  const std::byte ip[] = {std::byte{127}, std::byte{0}, std::byte{97}, std::byte{1}};
  return SocketAddress::v4(ip, next++);
}

class KeyedListenerTest : public ::testing::Test {
 protected:
  using State = HelloSender::State;

  std::unique_ptr<LocalListener> open(const SocketAddress& name, const seal::JobKeys& keys) {
    std::string reason;
    auto listener = open_listener(name, 1, ShmSettings{.keys = keys}, surroundings_.environment(), reason);
    EXPECT_TRUE(listener) << reason;
    return listener;
  }
  /// True if a message of one gets to the other.
  bool reaches(LocalListener& one, LocalListener& other, const SocketAddress& other_name) {
    const Connection connection = one.connect(other_name);
    if (connection.outbox == nullptr) return false;
    other.accept(inboxes_);
    connection.outbox->advance_greeting();
    other.accept(inboxes_);
    const Message message(1, 8);
    const bool posted =
        connection.outbox->post(message.segment, message.gather(), carrier::PayloadMode::copy, 0);
    PeekedSegment arrival;
    return posted && inboxes_.size() == 1 && inboxes_.back()->peek(arrival) &&
           message.equals(arrival.segment, arrival.payload);
  }
  bool reaches(const seal::JobKeys& keys, const seal::JobKeys& others) {
    inboxes_.clear();
    const SocketAddress name = fresh_keyed_name();
    const auto one = open(fresh_keyed_name(), keys);
    const auto other = open(name, others);
    return reaches(*one, *other, name);
  }

  Surroundings surroundings_;
  const seal::JobKeys keys_ = test::credentials({"the key of this job"}).keys;
  const seal::JobKeys others_ = test::credentials({"the key of another"}).keys;
  const seal::JobKeys changing_ = test::credentials({"a new key of this job", "the key of this job"}).keys;
  std::vector<std::unique_ptr<Inbox>> inboxes_;
};

TEST_F(KeyedListenerTest, OnlyEndpointsWithTheSameKeyAreReached) {
  EXPECT_TRUE(reaches(keys_, keys_));
  EXPECT_FALSE(reaches(keys_, others_));
  EXPECT_FALSE(reaches(keys_, {}));
  EXPECT_FALSE(reaches({}, keys_));
}

TEST_F(KeyedListenerTest, OneOfTwoKeysIsEnough) {
  EXPECT_TRUE(reaches(keys_, changing_));
  EXPECT_TRUE(reaches(changing_, keys_));
  EXPECT_TRUE(reaches(changing_, changing_));
  EXPECT_FALSE(reaches(changing_, others_));
}

/// A listener with two keys is woken by connections under both.
TEST_F(KeyedListenerTest, AConnectionUnderEitherKeyIsSeen) {
  const SocketAddress name = fresh_keyed_name();
  const auto listener = open(name, changing_);
  const auto waiting = os::WaitSet::open();
  ASSERT_TRUE(waiting->add(listener->descriptor(), this));
  std::array<os::WaitSet::Event, 4> events;
  for (const KeyedName& each : keyed_names(socket_name(name), changing_)) {
    listener->accept(inboxes_);
    EXPECT_EQ(waiting->collect(events), 0u);
    std::string reason;
    ASSERT_TRUE(os::LocalSocket::connect(each.socket, reason)) << reason;
    EXPECT_EQ(waiting->collect(events), 1u);
  }
}

TEST_F(KeyedListenerTest, NothingIsWrittenBeforeThePeerHasShownTheKey) {
  const SocketAddress name = fresh_keyed_name();
  const auto one = open(fresh_keyed_name(), keys_);
  const auto other = open(name, keys_);
  const Connection connection = one->connect(name);
  ASSERT_TRUE(connection.outbox) << connection.reason;
  Outbox& outbox = *connection.outbox;
  const Message message(1, 8);
  const auto post = [&] {
    return outbox.post(message.segment, message.gather(), carrier::PayloadMode::copy, 0);
  };
  EXPECT_EQ(outbox.advance_greeting(), State::waiting);
  EXPECT_FALSE(post());
  outbox.request_doorbell();
  EXPECT_FALSE(outbox.peer_gone());
  EXPECT_TRUE(outbox.drained());
  other->accept(inboxes_);
  EXPECT_TRUE(inboxes_.empty());
  EXPECT_TRUE(other->has_half_open());
  EXPECT_EQ(outbox.advance_greeting(), State::sent);
  EXPECT_TRUE(post());
  EXPECT_FALSE(outbox.drained());
  other->accept(inboxes_);
  ASSERT_EQ(inboxes_.size(), 1u);
  EXPECT_FALSE(other->has_half_open());
}

/// A process that has read the name in /proc/net/unix takes it when its owner has gone.
class SquattedNameTest : public KeyedListenerTest {
 protected:
  SquattedNameTest() {
    std::string reason;
    squatter_ = os::LocalSocket::listen(keyed_names(socket_name(name_), keys_).front().socket, reason);
    EXPECT_TRUE(squatter_) << reason;
    outbox_ = one_->connect(name_).outbox;
    EXPECT_TRUE(outbox_);
    victim_ = squatter_.accept(reason);
    EXPECT_TRUE(victim_) << reason;
  }

  const SocketAddress name_ = fresh_keyed_name();
  std::unique_ptr<LocalListener> one_ = open(fresh_keyed_name(), keys_);
  os::LocalSocket squatter_;
  os::LocalSocket victim_;
  std::unique_ptr<Outbox> outbox_;
  std::string reason_;
};

TEST_F(SquattedNameTest, GetsARequestAndNoMemory) {
  std::array<std::byte, 256> message;
  os::Descriptor file;
  EXPECT_EQ(victim_.receive(message, &file), os::LocalSocket::Receipt::misfit);
  EXPECT_FALSE(file);
  EXPECT_EQ(victim_.receive(message, &file), os::LocalSocket::Receipt::nothing);
  const seal::ProofAnswer nonsense;
  ASSERT_TRUE(victim_.send(as_bytes(&nonsense, sizeof nonsense)));
  EXPECT_EQ(outbox_->advance_greeting(), State::failed);
  EXPECT_EQ(victim_.receive(message, &file), os::LocalSocket::Receipt::nothing);
  const Message segment(1, 8);
  EXPECT_FALSE(outbox_->post(segment.segment, segment.gather(), carrier::PayloadMode::copy, 0));
}

/// The other endpoint has the key, and can only prove its own name.
TEST_F(SquattedNameTest, CannotAnswerWithTheHelpOfAnother) {
  const SocketAddress other_name = fresh_keyed_name();
  const auto other = open(other_name, keys_);
  seal::ProofRequest request;
  ASSERT_EQ(victim_.receive(as_bytes(&request, sizeof request)), os::LocalSocket::Receipt::message);
  std::string reason;
  os::LocalSocket relay =
      os::LocalSocket::connect(keyed_names(socket_name(other_name), keys_).front().socket, reason);
  ASSERT_TRUE(relay) << reason;
  ASSERT_TRUE(relay.send(as_bytes(&request, sizeof request)));
  other->accept(inboxes_);
  seal::ProofAnswer answer;
  ASSERT_EQ(relay.receive(as_bytes(&answer, sizeof answer)), os::LocalSocket::Receipt::message);
  ASSERT_TRUE(victim_.send(as_bytes(&answer, sizeof answer)));
  EXPECT_EQ(outbox_->advance_greeting(), State::failed);
}

/// The name is the squatter's, so the owner, which has the key, listens to an alternative of it; the squatter hands each
/// side what the other says.
TEST_F(SquattedNameTest, CannotStandBetweenTwoSides) {
  const std::string name = keyed_names(socket_name(name_), keys_).front().socket;
  KeyedSocket owner{os::LocalSocket::listen(name + "/alternative", reason_), keys_.front()};
  ASSERT_TRUE(owner.socket) << reason_;
  os::LocalSocket relay = os::LocalSocket::connect(name + "/alternative", reason_);
  ASSERT_TRUE(relay) << reason_;
  HelloReceiver receiver({owner.socket.accept(reason_), owner.key}, surroundings_.environment().random);

  seal::ProofRequest request;
  ASSERT_EQ(victim_.receive(as_bytes(&request, sizeof request)), os::LocalSocket::Receipt::message);
  ASSERT_TRUE(relay.send(as_bytes(&request, sizeof request)));
  Hello hello;
  os::Descriptor ring;
  EXPECT_EQ(receiver.receive(as_bytes(&hello, sizeof hello), ring), HelloReceiver::Receipt::nothing);
  ASSERT_TRUE(receiver.answered());
  seal::ProofAnswer answer;
  ASSERT_EQ(relay.receive(as_bytes(&answer, sizeof answer)), os::LocalSocket::Receipt::message);
  ASSERT_TRUE(victim_.send(as_bytes(&answer, sizeof answer)));
  EXPECT_EQ(outbox_->advance_greeting(), State::failed);
}

TEST_F(SquattedNameTest, ThatRefusesIsAPeerWithoutDescriptors) {
  victim_.send_refusal();
  EXPECT_EQ(outbox_->advance_greeting(), State::failed);
  victim_ = {};
  EXPECT_TRUE(outbox_->peer_gone());
  EXPECT_TRUE(outbox_->refused());
}

/// It has seen all names, and messages of others, and has not the key.
class IntruderTest : public KeyedListenerTest {
 protected:
  void SetUp() override {
    std::string reason;
    socket_ = os::LocalSocket::connect(keyed_names(socket_name(name_), keys_).front().socket, reason);
    ASSERT_TRUE(socket_) << reason;
  }
  void expect_refused(const std::string& because) {
    listener_->accept(inboxes_);
    EXPECT_TRUE(inboxes_.empty());
    EXPECT_FALSE(listener_->has_half_open());
    EXPECT_EQ(surroundings_.counters.shm_refused, 1u);
    EXPECT_NE(surroundings_.said.find(because), std::string::npos) << surroundings_.said;
  }
  static Hello hello() { return {fresh_keyed_name(), 1, kSmall}; }

  const SocketAddress name_ = fresh_keyed_name();
  std::unique_ptr<LocalListener> listener_ = open(name_, keys_);
  os::LocalSocket socket_;
  std::string reason_;
};

TEST_F(IntruderTest, IsNotLetInWithTheHelloOfAnUnkeyedPeer) {
  const Hello message = hello();
  os::Descriptor file;
  const os::SharedMemory memory = os::SharedMemory::create(kSmall.total_bytes(), file, reason_);
  ASSERT_TRUE(socket_.send(as_bytes(&message, sizeof message), file, reason_)) << reason_;
  expect_refused("its first message is not from this provider");
}

TEST_F(IntruderTest, IsNotLetInWithATagThatItHasSeen) {
  const seal::ProofRequest request;
  ASSERT_TRUE(socket_.send(as_bytes(&request, sizeof request)));
  listener_->accept(inboxes_);
  EXPECT_TRUE(listener_->has_half_open());
  seal::ProofAnswer answer;
  ASSERT_EQ(socket_.receive(as_bytes(&answer, sizeof answer)), os::LocalSocket::Receipt::message);
  struct {
    Hello hello;
    seal::Tag tag;
  } const signed_hello{hello(), answer.tag};
  os::Descriptor file;
  const os::SharedMemory memory = os::SharedMemory::create(kSmall.total_bytes(), file, reason_);
  ASSERT_TRUE(socket_.send(as_bytes(&signed_hello, sizeof signed_hello), file, reason_)) << reason_;
  expect_refused("it does not have the key of this process");
  EXPECT_EQ(surroundings_.counters.refused_forged, 1u);
}

}  // namespace
}  // namespace cluster::shm

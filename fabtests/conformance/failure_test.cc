// Unreachable addresses, a peer that ends or crashes, a peer that restarts under the same name. Every pending
// operation completes in bounded time, and communication with a restarted peer works.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_rma.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric.h"

namespace conformance {
namespace {

using std::chrono::seconds;

/// Must be set before libfabric is loaded, so first thing in a body.
void expect_deaths_soon() {
  setenv("FI_CLUSTER_PEER_TIMEOUT", setting("CONFORMANCE_PEER_TIMEOUT", "2000").c_str(), 1);
}

Blob changed(Blob name, const std::function<void(sockaddr_in&)>& change) {
  sockaddr_in in;
  std::memcpy(&in, name.data(), sizeof in);
  change(in);
  std::memcpy(name.data(), &in, sizeof in);
  return name;
}

std::string port_of(const Blob& name) {
  sockaddr_in in;
  std::memcpy(&in, name.data(), sizeof in);
  return std::to_string(ntohs(in.sin_port));
}

/// A port of this node that no socket is bound to any more.
Blob dead_port() {
  Endpoint gone;
  return gone.name();
}

void expect_all_to_fail(Endpoint& e, fi_addr_t peer) {
  std::vector<unsigned char> big(1 << 20);
  int contexts[3];
  const std::size_t sizes[3] = {8, 10000, big.size()};
  for (int i = 0; i < 3; ++i) {
    e.must([&] { return fi_send(e.ep(), big.data(), sizes[i], nullptr, peer, &contexts[i]); });
  }
  for (int& context : contexts) {
    const auto outcome = e.await(&context, seconds(20));
    ASSERT_TRUE(outcome.has_value()) << "neither success nor failure in bounded time";
    EXPECT_TRUE(outcome->error);
    EXPECT_GT(outcome->failure.err, 0);
  }
}

SINGLE_TEST(Failure, SendingToAClosedPortFailsInBoundedTime) {
  expect_deaths_soon();
  const Blob unreachable = dead_port();
  Endpoint e;
  expect_all_to_fail(e, e.insert(unreachable));
}

SINGLE_TEST(Failure, SendingToAMissingNodeFailsInBoundedTime) {
  ASSERT_TRUE(between_nodes()) << "run_setting.py leaves this out where there is no network between nodes";
  expect_deaths_soon();
  Endpoint e;
  const Blob unreachable = changed(e.name(), [](sockaddr_in& in) {
    in.sin_addr.s_addr = htonl((ntohl(in.sin_addr.s_addr) & 0xFFFFFF00) | 250);
  });
  expect_all_to_fail(e, e.insert(unreachable));
}

SINGLE_TEST(Failure, OthersAreNotTouched) {
  expect_deaths_soon();
  const Blob unreachable = dead_port();
  Endpoint e;
  Endpoint friendly(e.domain());
  const fi_addr_t dead = e.insert(unreachable);
  const fi_addr_t alive = e.insert(friendly.name());
  int to_dead = 0;
  int to_alive = 0;
  int at_friend = 0;
  char byte = 0;
  char place = 0;
  e.must([&] { return fi_send(e.ep(), &byte, 1, nullptr, dead, &to_dead); });
  std::optional<Outcome> verdict;
  const Deadline deadline(seconds(20));
  int rounds = 0;
  while (!verdict && !deadline.passed()) {
    friendly.must([&] { return fi_recv(friendly.ep(), &place, 1, nullptr, FI_ADDR_UNSPEC, &at_friend); });
    e.must([&] { return fi_send(e.ep(), &byte, 1, nullptr, alive, &to_alive); });
    std::optional<Outcome> arrived;
    while (!(arrived = friendly.await(&at_friend, std::chrono::milliseconds(0))) && !deadline.passed())
      e.progress();
    ASSERT_TRUE(arrived && !arrived->error);
    std::optional<Outcome> sent;
    while (!(sent = e.await(&to_alive, std::chrono::milliseconds(0))) && !deadline.passed())
      friendly.progress();
    ASSERT_TRUE(sent && !sent->error);
    verdict = e.await(&to_dead, std::chrono::milliseconds(0));
    ++rounds;
  }
  ASSERT_TRUE(verdict.has_value());
  EXPECT_TRUE(verdict->error);
  EXPECT_GT(rounds, 0);
}

/// If a peer dies after it announced a message, the receive that matches the message fails, whenever it is posted. A
/// receive for a message that was never announced stays posted and can be canceled: the peer's next incarnation may
/// send the message.
PAIR_TEST(Failure, APeerThatClosesTakesItsAnnouncedMessagesWithIt) {
  auto e = std::make_unique<Endpoint>();
  const auto names = side.exchange(e->name());
  const fi_addr_t peer = e->insert(names[static_cast<std::size_t>(1 - side.index())]);
  constexpr std::uint64_t kFirst = 1, kSecond = 2, kThird = 3, kNone = 4;
  std::vector<unsigned char> big(4 << 20);
  int contexts[4];
  int goodbye = 0;
  char byte = 0;
  if (!side.first()) {
    for (const std::uint64_t tag : {kFirst, kSecond, kThird}) {
      e->must([&] { return fi_tsend(e->ep(), big.data(), big.size(), nullptr, peer, tag, &contexts[tag]); });
    }
    e->must([&] { return fi_send(e->ep(), &byte, 1, nullptr, peer, &goodbye); });
    e->finish(&goodbye);  // the announcements are there, too
    e.reset();
    side.send_blob(0, {1});
    side.receive_blob(0);
    return;
  }
  const auto receive = [&](std::uint64_t tag, fi_addr_t from, int& context) {
    e->must([&] { return fi_trecv(e->ep(), big.data(), big.size(), nullptr, from, tag, 0, &context); });
  };
  receive(kNone, peer, contexts[0]);
  e->must([&] { return fi_recv(e->ep(), &byte, 1, nullptr, peer, &goodbye); });
  e->finish(&goodbye);
  side.receive_blob(1);  // without progress: the close has not been seen
  receive(kFirst, peer, contexts[1]);
  const auto in_between = e->await(&contexts[1]);
  EXPECT_TRUE(in_between && in_between->error);
  ASSERT_TRUE(e->silent(std::chrono::milliseconds(300)));
  receive(kSecond, FI_ADDR_UNSPEC, contexts[2]);
  receive(kThird, peer, contexts[3]);
  for (const int which : {2, 3}) {
    const auto outcome = e->await(&contexts[which]);
    ASSERT_TRUE(outcome.has_value()) << "the message is gone without a word";
    EXPECT_TRUE(outcome->error);
    EXPECT_EQ(outcome->failure.tag, static_cast<std::uint64_t>(which));
  }
  EXPECT_TRUE(e->silent(std::chrono::seconds(2)));
  EXPECT_EQ(fi_cancel(&e->ep()->fid, &contexts[0]), 0);
  e->fail(&contexts[0], FI_ECANCELED);
  side.send_blob(1, {1});
}

/// The peer's application owns its buffers again, though its process lives and its memory is readable.
PAIR_TEST(Failure, TheBuffersOfAPeerThatHasClosedAreNotRead) {
  for (const char* option : {"FI_CLUSTER_SHM_EAGER", "FI_CLUSTER_NET_EAGER"}) setenv(option, "1000", 1);
  auto e = std::make_unique<Endpoint>();
  const auto names = side.exchange(e->name());
  const fi_addr_t peer = e->insert(names[static_cast<std::size_t>(1 - side.index())]);
  std::vector<unsigned char> buffer = pattern(8000, 1);
  int context = 0;
  int goodbye = 0;
  char byte = 0;
  if (!side.first()) {
    e->must([&] { return fi_tsend(e->ep(), buffer.data(), buffer.size(), nullptr, peer, 1, &context); });
    e->must([&] { return fi_send(e->ep(), &byte, 1, nullptr, peer, &goodbye); });
    e->finish(&goodbye);
    e.reset();
    std::fill(buffer.begin(), buffer.end(), 0xee);
    side.send_blob(0, {1});
    side.receive_blob(0);
    return;
  }
  e->must([&] { return fi_recv(e->ep(), &byte, 1, nullptr, peer, &goodbye); });
  e->finish(&goodbye);
  side.receive_blob(1);  // without progress: the close has not been seen
  e->must([&] { return fi_trecv(e->ep(), buffer.data(), buffer.size(), nullptr, peer, 1, 0, &context); });
  const auto outcome = e->await(&context);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->error) << "received what the sender has overwritten";
  side.send_blob(1, {1});
}

SIDES_TEST(Failure, APeerThatDiesFailsWhatIsPendingTowardsIt, 2) {
  expect_deaths_soon();
  Endpoint e;
  const auto names = side.exchange(e.name());
  const fi_addr_t peer = e.insert(names[static_cast<std::size_t>(1 - side.index())]);
  int context = 0;
  char byte = 0;
  if (!side.first()) {
    e.must([&] { return fi_recv(e.ep(), &byte, 1, nullptr, FI_ADDR_UNSPEC, &context); });
    e.finish(&context);
    side.send_blob(0, {1});
    _exit(0);  // no close, no goodbye
  }
  e.must([&] { return fi_send(e.ep(), &byte, 1, nullptr, peer, &context); });
  e.finish(&context);
  side.receive_blob(1, [&] { e.progress(); });
  std::vector<unsigned char> big(4 << 20);
  e.must([&] { return fi_send(e.ep(), big.data(), big.size(), nullptr, peer, &context); });
  const auto outcome = e.await(&context, seconds(20));
  ASSERT_TRUE(outcome.has_value()) << "the sender got no completion";
  EXPECT_TRUE(outcome->error);
}

/// Writes go on until the target dies in their midst.
SIDES_TEST(Failure, ATargetThatDiesFailsTheWritesToIt, 2) {
  expect_deaths_soon();
  constexpr std::uint64_t kKey = 3;
  Options options;
  options.caps = FI_MSG | FI_TAGGED | FI_RMA;
  Endpoint e(options);
  const auto names = side.exchange(e.name());
  const fi_addr_t peer = e.insert(names[static_cast<std::size_t>(1 - side.index())]);
  std::vector<unsigned char> bytes(1 << 20, 1);
  fid_mr* opened = nullptr;
  ASSERT_EQ(fi_mr_reg(e.domain().domain(), bytes.data(), bytes.size(), FI_REMOTE_WRITE, 0, kKey, 0, &opened,
                      nullptr),
            0);
  const Owned<fid_mr> region(opened);
  side.meet();
  if (!side.first()) {
    side.receive_blob(0, [&] { e.progress(); });
    for (const Deadline end(std::chrono::milliseconds(20)); !end.passed();) e.progress();
    _exit(0);  // no close, no goodbye
  }
  side.send_blob(1, {1});
  std::optional<Outcome> outcome;
  int context = 0;
  for (const Deadline end(seconds(20)); !end.passed() && !(outcome && outcome->error);) {
    e.must([&] { return fi_write(e.ep(), bytes.data(), bytes.size(), nullptr, peer, 0, kKey, &context); });
    outcome = e.await(&context, seconds(20));
    ASSERT_TRUE(outcome.has_value()) << "neither success nor failure in bounded time";
  }
  EXPECT_TRUE(outcome && outcome->error);
}

/// One side of an alternating exchange of messages of several sizes; each incarnation has its own `seed`.
struct Exchange {
  Endpoint& e;
  fi_addr_t peer;
  bool sends_first;
  std::uint64_t seed;
  /// The peer's former process has crashed: sends may fail, each at once, until its successor has been reached.
  bool resets_allowed = false;

  void run() {
    int in = 0;
    for (const std::size_t size : {8u, 5000u, 600000u}) {
      std::vector<unsigned char> buffer(size);
      e.must([&] { return fi_trecv(e.ep(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, size, 0, &in); });
      if (sends_first) send(size);
      e.finish(&in);
      if (!sends_first) send(size);
      EXPECT_TRUE(has_pattern(buffer, seed));
    }
  }
  void send(std::size_t size) {
    const auto data = pattern(size, seed);
    int out = 0;
    const Deadline deadline(seconds(20));
    for (;;) {
      e.must([&] { return fi_tsend(e.ep(), data.data(), size, nullptr, peer, size, &out); });
      const auto outcome = e.await(&out);
      ASSERT_TRUE(outcome.has_value()) << "no completion in time";
      if (!outcome->error) break;
      ASSERT_TRUE(resets_allowed && !deadline.passed()) << fi_strerror(outcome->failure.err);
    }
    resets_allowed = false;
  }
};

/// The ports of a process become free a moment after its end: waits until this one is.
void await_free(const std::string& port) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
  const Deadline deadline(seconds(20));
  for (bool free = false; !free && !deadline.passed();) {
    const int trial = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    free = bind(trial, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
    close(trial);
    if (!free) usleep(1000);
  }
}

struct Restart {
  bool politely;        ///< the first life closes its endpoint before it ends
  bool newcomer_first;  ///< the second life speaks first

  /// Side 1 lives once; side 3, on the same node, takes its name and is reached again.
  void play(Side& side) const {
    expect_deaths_soon();
    setenv("FI_CLUSTER_END_ABANDONED", "no", 1);  // receives from any sender wait for the second life
    if (side.index() == 0) stay(side);
    if (side.index() == 1) first_life(side);
    if (side.index() == 3) second_life(side);  // side 2 would be on the wrong node
  }
  void stay(Side& side) const {
    Endpoint e;
    const fi_addr_t peer = e.insert(side.receive_blob(1));
    side.send_blob(1, e.name());
    Exchange{e, peer, true, 1}.run();
    side.send_blob(1, {1});
    side.receive_blob(3, [&] { e.progress(); });  // side 3 is up, under the old name
    // The provider notices the death of a peer on this node a moment later. Writes before that are lost with the peer,
    // as with any peer that dies before it reads.
    e.silent(std::chrono::milliseconds(300));
    side.send_blob(3, e.name());
    // Where the end of the process is known before its successor is, sends fail until that has answered a call.
    Exchange{e, peer, !newcomer_first, 2, !politely && !newcomer_first}.run();
    side.receive_blob(3, [&] { e.progress(); });
  }
  void first_life(Side& side) const {
    auto e = std::make_unique<Endpoint>();
    const Blob name = e->name();
    side.send_blob(0, name);
    const fi_addr_t peer = e->insert(side.receive_blob(0));
    Exchange{*e, peer, false, 1}.run();
    side.receive_blob(0, [&] { e->progress(); });
    if (politely) e.reset();
    side.send_blob(3, name);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  void second_life(Side& side) const {
    Options options;
    options.service = port_of(side.receive_blob(1));
    await_free(options.service);
    Endpoint e(options);
    side.send_blob(0, {1});
    const fi_addr_t peer = e.insert(side.receive_blob(0));
    Exchange{e, peer, newcomer_first, 2}.run();
    side.send_blob(0, {1});
  }
};

SIDES_TEST(Restart, APeerThatClosedComesBackUnderItsName, 4) { Restart{true, false}.play(side); }

SIDES_TEST(Restart, APeerThatClosedComesBackAndSpeaksFirst, 4) { Restart{true, true}.play(side); }

SIDES_TEST(Restart, APeerThatCrashedComesBackUnderItsName, 4) { Restart{false, false}.play(side); }

SIDES_TEST(Restart, APeerThatCrashedComesBackAndSpeaksFirst, 4) { Restart{false, true}.play(side); }

SINGLE_TEST(Close, WhatIsOutstandingIsDroppedWithoutAWord) {
  Domain domain;
  fi_cq_attr attr{};
  attr.format = FI_CQ_FORMAT_CONTEXT;
  fid_cq* raw = nullptr;
  ASSERT_EQ(fi_cq_open(domain.domain(), &attr, &raw, nullptr), 0);
  const Owned<fid_cq> cq(raw);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(domain.domain(), domain.info(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &domain.av()->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &raw->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  char buffers[100];
  for (char& buffer : buffers) {
    ASSERT_EQ(fi_recv(ep, &buffer, 1, nullptr, FI_ADDR_UNSPEC, &buffer), 0);
    ASSERT_EQ(fi_trecv(ep, &buffer, 1, nullptr, FI_ADDR_UNSPEC, 7, 0, &buffer), 0);
  }
  EXPECT_EQ(fi_close(&ep->fid), 0);
  fi_cq_entry entry;
  EXPECT_EQ(fi_cq_read(raw, &entry, 1), -FI_EAGAIN);
}

SINGLE_TEST(Close, AQueueMayBeClosedWithWhatItHolds) {
  Endpoint e;
  const fi_addr_t self = e.insert(e.name());
  char byte = 0;
  e.must([&] { return fi_recv(e.ep(), &byte, 1, nullptr, self, &byte); });
  e.must([&] { return fi_send(e.ep(), &byte, 1, nullptr, self, &byte); });
  for (int turn = 0; turn < 100; ++turn) e.progress();
}

PAIR_TEST(Close, WhatThePeerIsOwedStillGoesOut) {
  // The receiver closes and leaves the moment it has the message: the sender must see success.
  for (int round = 0; round < 10; ++round) {
    auto e = std::make_unique<Endpoint>();
    const auto names = side.exchange(e->name());
    const fi_addr_t peer = e->insert(names[static_cast<std::size_t>(1 - side.index())]);
    int context = 0;
    std::vector<unsigned char> buffer(round % 2 == 0 ? 64 : 200000);
    if (side.first()) {
      e->must([&] { return fi_send(e->ep(), buffer.data(), buffer.size(), nullptr, peer, &context); });
    } else {
      e->must([&] { return fi_recv(e->ep(), buffer.data(), buffer.size(), nullptr, peer, &context); });
    }
    e->finish(&context);
    e.reset();
  }
}

}  // namespace
}  // namespace conformance

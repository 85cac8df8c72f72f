// Connections (FI_EP_MSG): events in order, private data, data both ways, and every way in which a connection
// ends. Side 0 listens.
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "fabric.h"

namespace conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Event {
  std::uint32_t kind = ~0u;  ///< ~0: none in time
  int error = 0;             ///< of an error event
  fid_t fid = nullptr;
  Info info;
  std::string data;
};

/// Fabric, domain and event queue of one side, with what waits in its completion queue.
struct Host {
  explicit Host(fi_wait_obj wait = FI_WAIT_NONE) {
    Options options;
    options.type = FI_EP_MSG;
    options.caps = FI_MSG | FI_TAGGED | FI_RMA;
    info = get_info(options);
    if (!info) {
      ADD_FAILURE() << "FI_EP_MSG is not offered";
      std::fflush(nullptr);
      _exit(1);
    }
    fid_fabric* fabric_handle = nullptr;
    EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric_handle, nullptr), 0);
    fabric.reset(fabric_handle);
    fid_domain* domain_handle = nullptr;
    EXPECT_EQ(fi_domain(fabric.get(), info.get(), &domain_handle, nullptr), 0);
    domain.reset(domain_handle);
    fi_eq_attr attributes{};
    attributes.wait_obj = wait;
    fid_eq* eq_handle = nullptr;
    EXPECT_EQ(fi_eq_open(fabric.get(), &attributes, &eq_handle, nullptr), 0);
    eq.reset(eq_handle);
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* cq_handle = nullptr;
    EXPECT_EQ(fi_cq_open(domain.get(), &cq_attributes, &cq_handle, nullptr), 0);
    cq.reset(cq_handle);
  }
  Owned<fid_ep> open(fi_info* with) {
    fid_ep* endpoint = nullptr;
    EXPECT_EQ(fi_endpoint(domain.get(), with, &endpoint, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &eq->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    if (shared) {
      EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), 0);
    }
    EXPECT_EQ(fi_enable(endpoint), 0);
    return Owned<fid_ep>(endpoint);
  }
  Owned<fid_pep> listen() {
    fid_pep* passive = nullptr;
    EXPECT_EQ(fi_passive_ep(fabric.get(), info.get(), &passive, nullptr), 0);
    EXPECT_EQ(fi_pep_bind(passive, &eq->fid, 0), 0);
    EXPECT_EQ(fi_listen(passive), 0);
    return Owned<fid_pep>(passive);
  }
  void progress() {
    fi_cq_tagged_entry entry;
    const ssize_t count = fi_cq_read(cq.get(), &entry, 1);
    if (count == 1) ++completed;
    if (count != -FI_EAVAIL) return;
    fi_cq_err_entry error{};
    fi_cq_readerr(cq.get(), &error, 0);
    errors.push_back(error.err);
  }
  Event next(milliseconds limit = seconds(20)) {
    for (const Deadline deadline(limit); !deadline.passed();) {
      progress();
      Event event;
      alignas(8) std::byte bytes[sizeof(fi_eq_cm_entry) + 512];
      const ssize_t size = fi_eq_read(eq.get(), &event.kind, bytes, sizeof bytes, 0);
      if (size == -FI_EAGAIN) {
        yield_processor();
        continue;
      }
      if (size == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        EXPECT_GT(fi_eq_readerr(eq.get(), &error, 0), 0);
        event.kind = FI_NOTIFY;
        event.error = error.err;
        event.fid = error.fid;
        event.data.assign(static_cast<const char*>(error.err_data), error.err_data_size);
        return event;
      }
      fi_eq_cm_entry entry;
      std::memcpy(&entry, bytes, sizeof entry);
      event.fid = entry.fid;
      event.info.reset(entry.info);
      if (size > ssize_t{sizeof entry})
        event.data.assign(reinterpret_cast<const char*>(bytes) + sizeof entry,
                          static_cast<std::size_t>(size) - sizeof entry);
      if (event.kind == FI_SHUTDOWN) event.data.clear(), event.info.release();
      return event;
    }
    return {};
  }
  void complete(int count) {
    for (const Deadline deadline(seconds(20)); completed < count && !deadline.passed();) progress();
    EXPECT_GE(completed, count);
  }
  void meet(Side& side) {
    side.meet([this] { progress(), fi_eq_read(eq.get(), nullptr, nullptr, 0, FI_PEEK); });
  }

  Info info;
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_cq> cq;
  Owned<fid_eq> eq;
  Owned<fid_ep> shared;  ///< a shared receive context, which the endpoints bind if it is open
  int completed = 0;
  std::vector<int> errors;
};

Blob name_of(fid& object) {
  Blob name(sizeof(sockaddr_in6));
  std::size_t size = name.size();
  EXPECT_EQ(fi_getname(&object, name.data(), &size), 0);
  name.resize(size);
  return name;
}

/// Both sides of one connection.
struct Pair {
  explicit Pair(Side& with, fi_wait_obj wait = FI_WAIT_NONE) : side(with), host(wait) {
    if (side.first()) {
      passive = host.listen();
      side.send_blob(1, name_of(passive->fid));
      request = host.next();
      EXPECT_EQ(request.kind, std::uint32_t{FI_CONNREQ});
      EXPECT_EQ(request.data, "please");
      end = host.open(request.info.get());
      post();
      EXPECT_EQ(fi_accept(end.get(), "yes", 3), 0);
    } else {
      end = host.open(host.info.get());
      post();
      EXPECT_EQ(fi_send(end.get(), &got, sizeof got, nullptr, 0, nullptr), -FI_ENOTCONN);
      EXPECT_EQ(fi_connect(end.get(), side.receive_blob(0).data(), "please", 6), 0);
    }
    const Event event = host.next();
    EXPECT_EQ(event.kind, std::uint32_t{FI_CONNECTED}) << "error " << event.error;
    EXPECT_EQ(event.fid, &end->fid);
    EXPECT_EQ(event.data, side.first() ? "" : "yes");
  }
  void post() { EXPECT_EQ(fi_recv(end.get(), &got, sizeof got, nullptr, FI_ADDR_UNSPEC, nullptr), 0); }

  Side& side;
  Host host;
  Owned<fid_pep> passive;
  Event request;
  Owned<fid_ep> end;
  std::uint64_t got = 0;
};

PAIR_TEST(Connection, MessagesGoBothWays) {
  Pair pair(side);
  const std::uint64_t word = 40 + static_cast<std::uint64_t>(side.index());
  ASSERT_EQ(fi_inject(pair.end.get(), &word, sizeof word, 0), 0);
  pair.host.complete(1);
  EXPECT_EQ(pair.got, 41u - static_cast<std::uint64_t>(side.index()));
  std::vector<unsigned char> sent = pattern(1 << 20, 5), received(sent.size());
  ASSERT_EQ(fi_trecv(pair.end.get(), received.data(), received.size(), nullptr, 0, 9, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(pair.end.get(), sent.data(), sent.size(), nullptr, 0, 9, nullptr), 0);
  pair.host.complete(3);
  EXPECT_EQ(received, sent);
  pair.host.meet(side);
}

PAIR_TEST(Connection, ConnectionsShareReceives) {
  constexpr std::size_t kConnections = 3;
  Host host;
  std::vector<Owned<fid_ep>> ends;
  if (!side.first()) {
    const Blob name = side.receive_blob(0);
    for (std::uint64_t i = 0; i < kConnections; ++i) {
      ends.push_back(host.open(host.info.get()));
      ASSERT_EQ(fi_connect(ends[i].get(), name.data(), nullptr, 0), 0);
      ASSERT_EQ(host.next().kind, std::uint32_t{FI_CONNECTED});
      ASSERT_EQ(fi_inject(ends[i].get(), &i, sizeof i, 0), 0);
    }
    host.meet(side);
    for (std::uint64_t i = 0; i < kConnections; ++i) {
      const std::uint64_t word = 10 + i;
      ASSERT_EQ(fi_tinject(ends[i].get(), &word, sizeof word, 0, i), 0);
    }
    host.meet(side);
    host.meet(side);
    return;
  }
  fid_ep* shared = nullptr;
  ASSERT_EQ(fi_srx_context(host.domain.get(), host.info->rx_attr, &shared, nullptr), 0);
  host.shared.reset(shared);
  std::array<std::uint64_t, kConnections> words{77, 77, 77};
  for (std::uint64_t& word : words)
    ASSERT_EQ(fi_recv(shared, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  const Owned<fid_pep> passive = host.listen();
  side.send_blob(1, name_of(passive->fid));
  for (std::size_t i = 0; i < kConnections; ++i) {
    const Event request = host.next();
    ASSERT_EQ(request.kind, std::uint32_t{FI_CONNREQ});
    ends.push_back(host.open(request.info.get()));
    ASSERT_EQ(fi_accept(ends[i].get(), nullptr, 0), 0);
    ASSERT_EQ(host.next().kind, std::uint32_t{FI_CONNECTED});
  }
  host.complete(kConnections);
  EXPECT_EQ(words, (std::array<std::uint64_t, kConnections>{0, 1, 2})) << "the oldest receive is taken";
  host.meet(side);
  host.meet(side);  // now the tagged messages are stored
  for (std::uint64_t i = kConnections; i-- > 0;)
    ASSERT_EQ(fi_trecv(shared, &words[i], sizeof words[i], nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
  host.complete(2 * kConnections);
  EXPECT_EQ(words, (std::array<std::uint64_t, kConnections>{10, 11, 12}));
  host.meet(side);
}

PAIR_TEST(Connection, AClosedEndpointLeavesNoEvents) {
  Pair pair(side);
  pair.host.meet(side);
  if (!side.first()) {
    ASSERT_EQ(fi_shutdown(pair.end.get(), 0), 0);  // queues the event, which nobody reads
  }
  pair.host.meet(side);  // the other side's end must not close before that
  pair.end.reset();
  EXPECT_EQ(pair.host.next(milliseconds(300)).kind, ~0u) << "an event of an endpoint that no longer exists";
  pair.host.meet(side);
}

// Whether a request comes before the listener closes, meanwhile or after it, the listener survives, and the
// attempt ends.
PAIR_TEST(Connection, AListenerClosesWhileRequestsArrive) {
  Host host;
  for (int round = 0; round < 3; ++round) {
    if (side.first()) {
      auto passive = host.listen();
      side.send_blob(1, name_of(passive->fid));
      for (int i = 0; i < round * 100; ++i) host.progress();
      passive.reset();
      EXPECT_EQ(host.next(milliseconds(1)).kind, ~0u) << "an event of a closed listener";
    } else {
      const Owned<fid_ep> end = host.open(host.info.get());
      ASSERT_EQ(fi_connect(end.get(), side.receive_blob(0).data(), nullptr, 0), 0);
      EXPECT_EQ(host.next().error, FI_ECONNREFUSED);
    }
    host.meet(side);
  }
}

PAIR_TEST(Connection, AShutdownEndsBothSidesOnce) {
  Pair pair(side);
  pair.host.meet(side);
  if (!side.first()) {
    ASSERT_EQ(fi_shutdown(pair.end.get(), 0), 0);
  }
  EXPECT_EQ(pair.host.next().kind, std::uint32_t{FI_SHUTDOWN});
  pair.host.progress();
  EXPECT_EQ(pair.host.errors, std::vector<int>{FI_ECANCELED}) << "the receive that waited";
  EXPECT_EQ(fi_inject(pair.end.get(), &pair.got, sizeof pair.got, 0), -FI_ENOTCONN);
  EXPECT_EQ(pair.host.next(milliseconds(200)).kind, ~0u);
  pair.host.meet(side);
}

PAIR_TEST(Connection, WhatWasSentBeforeTheShutdownArrives) {
  Pair pair(side);
  if (!side.first()) {
    const std::uint64_t word = 7;
    ASSERT_EQ(fi_inject(pair.end.get(), &word, sizeof word, 0), 0);
    pair.end.reset();  // closes
    return;
  }
  EXPECT_EQ(pair.host.next().kind, std::uint32_t{FI_SHUTDOWN});
  pair.host.complete(1);
  EXPECT_EQ(pair.got, 7u);
}

PAIR_TEST(Connection, ARejectBringsItsData) {
  Host host;
  if (side.first()) {
    const auto passive = host.listen();
    side.send_blob(1, name_of(passive->fid));
    const Event request = host.next();
    ASSERT_EQ(request.kind, std::uint32_t{FI_CONNREQ});
    EXPECT_EQ(fi_reject(passive.get(), request.info->handle, "no", 2), 0);
    host.meet(side);
    return;
  }
  const auto end = host.open(host.info.get());
  ASSERT_EQ(fi_connect(end.get(), side.receive_blob(0).data(), nullptr, 0), 0);
  const Event refused = host.next();
  EXPECT_EQ(refused.error, FI_ECONNREFUSED);
  EXPECT_EQ(refused.fid, &end->fid);
  EXPECT_EQ(refused.data, "no");
  host.meet(side);
}

PAIR_TEST(Connection, AnAttemptEndsIfTheTakerOfItsRequestDies) {
  setenv("FI_CLUSTER_PEER_TIMEOUT", setting("CONFORMANCE_PEER_TIMEOUT", "2000").c_str(), 1);
  Host host;
  if (side.first()) {
    auto passive = host.listen();
    side.send_blob(1, name_of(passive->fid));
    const Event request = host.next();
    ASSERT_EQ(request.kind, std::uint32_t{FI_CONNREQ});
    const auto end = host.open(request.info.get());
    passive.reset();  // the request belongs to `end`
    EXPECT_EQ(host.next(milliseconds(500)).kind, ~0u);
    _exit(0);  // without closing
  }
  const auto end = host.open(host.info.get());
  ASSERT_EQ(fi_connect(end.get(), side.receive_blob(0).data(), nullptr, 0), 0);
  EXPECT_NE(host.next().error, 0);
}

PAIR_TEST(Connection, AShutdownEndsWhatIsUnderWay) {
  Pair pair(side);
  pair.host.meet(side);
  const std::vector<unsigned char> sent = pattern(1 << 20, 5);
  if (!side.first()) {
    ASSERT_EQ(fi_tsend(pair.end.get(), sent.data(), sent.size(), nullptr, 0, 9, nullptr), 0);
    ASSERT_EQ(fi_shutdown(pair.end.get(), 0), 0);
  }
  EXPECT_EQ(pair.host.next().kind, std::uint32_t{FI_SHUTDOWN});
  const std::size_t expected = side.first() ? 1 : 2;  // the receive that waited, and the send
  for (const Deadline deadline(seconds(20)); pair.host.errors.size() < expected && !deadline.passed();)
    pair.host.progress();
  EXPECT_EQ(pair.host.errors, std::vector<int>(expected, FI_ECANCELED));
  pair.host.meet(side);
}

PAIR_TEST(Connection, ALongMessageArrivesBeforeTheShutdown) {
  Pair pair(side);
  const std::vector<unsigned char> sent = pattern(8 << 20, 5);
  std::vector<unsigned char> received(sent.size());
  if (side.first()) {
    ASSERT_EQ(fi_trecv(pair.end.get(), received.data(), received.size(), nullptr, 0, 9, 0, nullptr), 0);
  }
  pair.host.meet(side);
  if (!side.first()) {
    ASSERT_EQ(fi_tsend(pair.end.get(), sent.data(), sent.size(), nullptr, 0, 9, nullptr), 0);
    ASSERT_EQ(fi_shutdown(pair.end.get(), 0), 0);
  }
  EXPECT_EQ(pair.host.next().kind, std::uint32_t{FI_SHUTDOWN});
  EXPECT_TRUE(!side.first() || received == sent);
  pair.host.complete(1);
  pair.host.meet(side);
}

PAIR_TEST(Connection, WithoutAListenerItIsRefusedSoon) {
  Host host;
  if (side.first()) {
    auto passive = host.listen();
    const Blob name = name_of(passive->fid);
    passive.reset();
    side.send_blob(1, name);
    return side.meet();
  }
  const auto end = host.open(host.info.get());
  ASSERT_EQ(fi_connect(end.get(), side.receive_blob(0).data(), nullptr, 0), 0);
  EXPECT_EQ(host.next(seconds(5)).error, FI_ECONNREFUSED);
  side.meet();
}

PAIR_TEST(Connection, ADeadPeerEndsItAlthoughNothingIsUnderWay) {
  setenv("FI_CLUSTER_PEER_TIMEOUT", setting("CONFORMANCE_PEER_TIMEOUT", "2000").c_str(), 1);
  Pair pair(side);
  if (!side.first()) {
    side.send_blob(0, {1});
    _exit(0);  // without closing
  }
  side.receive_blob(1);
  EXPECT_EQ(pair.host.next(seconds(20)).kind, std::uint32_t{FI_SHUTDOWN});
}

PAIR_TEST(Connection, OneListenerTakesManyConnections) {
  constexpr int kCount = 64;
  Host host;
  std::vector<Owned<fid_ep>> ends;
  std::vector<std::uint64_t> got(kCount);
  if (side.first()) {
    const auto passive = host.listen();
    side.send_blob(1, name_of(passive->fid));
    for (int connected = 0; connected < kCount;) {
      const Event event = host.next();
      ASSERT_NE(event.kind, ~0u);
      if (event.kind == FI_CONNECTED) ++connected;
      if (event.kind != FI_CONNREQ) continue;
      ends.push_back(host.open(event.info.get()));
      std::uint64_t& word = got[ends.size() - 1];
      ASSERT_EQ(fi_recv(ends.back().get(), &word, sizeof word, nullptr, 0, nullptr), 0);
      ASSERT_EQ(fi_accept(ends.back().get(), nullptr, 0), 0);
    }
    host.complete(kCount);
    std::sort(got.begin(), got.end());
    for (std::uint64_t i = 0; i < kCount; ++i) EXPECT_EQ(got[i], i + 1);
  } else {
    const Blob name = side.receive_blob(0);
    for (int i = 0; i < kCount; ++i) {
      ends.push_back(host.open(host.info.get()));
      ASSERT_EQ(fi_connect(ends.back().get(), name.data(), nullptr, 0), 0);
    }
    for (int connected = 0; connected < kCount; ++connected)
      ASSERT_EQ(host.next().kind, std::uint32_t{FI_CONNECTED});
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::uint64_t word = i + 1;
      ASSERT_EQ(fi_inject(ends[i].get(), &word, sizeof word, 0), 0);
    }
  }
  host.meet(side);
}

PAIR_TEST(Connection, TheEventQueueWakesAThreadThatSleepsOnItsDescriptor) {
  Pair pair(side, FI_WAIT_FD);
  pair.host.meet(side);
  if (!side.first()) {
    usleep(100000);
    ASSERT_EQ(fi_shutdown(pair.end.get(), 0), 0);
    return pair.host.meet(side);
  }
  int descriptor = -1;
  ASSERT_EQ(fi_control(&pair.host.eq->fid, FI_GETWAIT, &descriptor), 0);
  fid_t waited = &pair.host.eq->fid;
  std::uint32_t kind = ~0u;
  fi_eq_cm_entry entry;
  for (const Deadline deadline(seconds(20)); kind == ~0u && !deadline.passed();) {
    if (fi_trywait(pair.host.fabric.get(), &waited, 1) == 0) {
      pollfd ready{descriptor, POLLIN, 0};
      ASSERT_EQ(::poll(&ready, 1, 20000), 1);
    }
    fi_eq_read(pair.host.eq.get(), &kind, &entry, sizeof entry, 0);
  }
  EXPECT_EQ(kind, std::uint32_t{FI_SHUTDOWN});
  pair.host.meet(side);
}

}  // namespace
}  // namespace conformance

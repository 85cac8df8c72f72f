// Shared receive and transmit contexts: receives that belong to several endpoints. fi_endpoint(3)
#include <atomic>
#include <mutex>
#include <thread>

#include "fabric.h"

namespace conformance {
namespace {

constexpr std::size_t kEndpoints = 3;

/// Endpoints of one domain with one context for receives and one for transmits.
struct Sharing {
  explicit Sharing(std::uint64_t caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
                   std::uint64_t bind_flags = 0)
      : domain(options_with(caps, bind_flags)) {
    fid_ep* rx = nullptr;
    fid_stx* tx = nullptr;
    EXPECT_EQ(fi_srx_context(domain.domain(), domain.info()->rx_attr, &rx, nullptr), 0);
    EXPECT_EQ(fi_stx_context(domain.domain(), domain.info()->tx_attr, &tx, nullptr), 0);
    shared_rx.reset(rx);
    shared_tx.reset(tx);
    Options options = domain.options();
    options.shared_rx = rx;
    options.shared_tx = tx;
    for (std::size_t i = 0; i < kEndpoints; ++i)
      endpoints.push_back(std::make_unique<Endpoint>(domain, options));
  }
  static Options options_with(std::uint64_t caps, std::uint64_t bind_flags) {
    Options options;
    options.caps = caps;
    options.bind_flags = bind_flags;
    return options;
  }
  Endpoint& operator[](std::size_t i) { return *endpoints[i]; }
  void progress() {
    for (const auto& each : endpoints) each->progress();
  }
  /// The next outcome of any endpoint. `at`: the endpoint that reported it.
  std::optional<Outcome> next(std::size_t* at = nullptr) {
    const Deadline deadline(std::chrono::seconds(20));
    while (!deadline.passed()) {
      for (std::size_t i = 0; i < kEndpoints; ++i) {
        const auto outcome = endpoints[i]->next(std::chrono::milliseconds(1));
        if (!outcome) continue;
        if (at != nullptr) *at = i;
        return outcome;
      }
      yield_processor();
    }
    return std::nullopt;
  }
  bool silent(std::chrono::milliseconds length) {
    for (const auto& each : endpoints) {
      if (!each->silent(length / kEndpoints)) return false;
    }
    return true;
  }

  Domain domain;
  Owned<fid_ep> shared_rx;  // closed after the endpoints
  Owned<fid_stx> shared_tx;
  std::vector<std::unique_ptr<Endpoint>> endpoints;
};

/// Side 0 has endpoints that share, side 1 the addresses of all of them.
struct SharingTeam : Sharing {
  explicit SharingTeam(Side& with, std::uint64_t caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
      : Sharing(caps), side(with) {
    for (const auto& each : endpoints) {
      const std::vector<Blob> names = side.exchange(each->name());
      peers.push_back(domain.insert(names[static_cast<std::size_t>(1 - side.index())]));
    }
  }
  ~SharingTeam() { meet(); }
  void meet() {
    side.meet([this] { progress(); });
  }
  void send(std::size_t to, const std::vector<unsigned char>& data, std::uint64_t tag) {
    int context = 0;
    Endpoint& e = (*this)[to];
    e.must([&] { return fi_tsend(e.ep(), data.data(), data.size(), nullptr, peers[to], tag, &context); });
    e.finish(&context);
  }

  Side& side;
  std::vector<fi_addr_t> peers;
};

PAIR_TEST(SharedContext, AMessageToAnyEndpointTakesTheOldestReceive) {
  SharingTeam team(side);
  for (const std::size_t size : {8u, 3000u, 200000u}) {
    SCOPED_TRACE(size);
    constexpr std::size_t kMessages = 7;
    if (!side.first()) {
      team.meet();
      for (std::size_t i = 0; i < kMessages; ++i) {
        team.send(i % kEndpoints, pattern(size, i), 5);
        team.meet();
      }
      continue;
    }
    std::vector<std::vector<unsigned char>> buffers(kMessages, std::vector<unsigned char>(size));
    for (auto& buffer : buffers)
      ASSERT_EQ(fi_trecv(team.shared_rx.get(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, 5, 0, &buffer),
                0);
    team.meet();
    for (std::size_t i = 0; i < kMessages; ++i) {
      std::size_t at = kEndpoints;
      const auto outcome = team.next(&at);
      ASSERT_TRUE(outcome && !outcome->error);
      EXPECT_EQ(outcome->entry.op_context, &buffers[i]);
      EXPECT_EQ(at, i % kEndpoints) << "the endpoint to which the message was sent reports it";
      EXPECT_EQ(outcome->source, team.peers[at]);
      EXPECT_EQ(outcome->entry.len, size);
      EXPECT_TRUE(has_pattern(buffers[i], i));
      team.meet();
    }
  }
}

PAIR_TEST(SharedContext, AReceiveTakesAMessageThatHasArrivedAtAnyEndpoint) {
  SharingTeam team(side);
  for (const std::size_t size : {8u, 3000u}) {
    SCOPED_TRACE(size);
    for (std::size_t to = 0; to < kEndpoints; ++to) {
      if (!side.first()) {
        team.send(to, pattern(size, to), to);
        team.meet();
        team.meet();
        continue;
      }
      team.meet();
      EXPECT_TRUE(team.silent(std::chrono::milliseconds(30)));
      std::vector<unsigned char> buffer(size);
      int context = 0;
      ASSERT_EQ(fi_trecv(team.shared_rx.get(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, to, 0, &context),
                0);
      const auto outcome = team.next();
      ASSERT_TRUE(outcome && !outcome->error);
      EXPECT_EQ(outcome->entry.op_context, &context);
      EXPECT_TRUE(has_pattern(buffer, to));
      team.meet();
    }
  }
}

PAIR_TEST(SharedContext, TagAndSourceChoose) {
  SharingTeam team(side);
  if (!side.first()) {
    team.meet();
    team.send(0, pattern(8, 1), 1);
    team.meet();
    team.send(1, pattern(8, 2), 2);
    team.send(2, pattern(8, 3), 0x13);
    team.meet();
    return;
  }
  std::vector<unsigned char> from_second(8), of_first(8), of_others(8);
  fid_ep* const rx = team.shared_rx.get();
  ASSERT_EQ(fi_trecv(rx, from_second.data(), 8, nullptr, team.peers[1], 0, ~0ull, &from_second), 0);
  ASSERT_EQ(fi_trecv(rx, of_others.data(), 8, nullptr, FI_ADDR_UNSPEC, 3, 0xf0, &of_others), 0);
  ASSERT_EQ(fi_trecv(rx, of_first.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &of_first), 0);
  team.meet();
  const auto first = team.next();
  ASSERT_TRUE(first && !first->error);
  EXPECT_EQ(first->entry.op_context, &of_first);
  EXPECT_TRUE(has_pattern(of_first, 1));
  team.meet();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(team.next());
  EXPECT_TRUE(has_pattern(from_second, 2));
  EXPECT_TRUE(has_pattern(of_others, 3));
  team.meet();
}

// One thread posts receives while another takes messages in. No receive may wait while its message is stored.
PAIR_TEST(SharedContext, NoReceiveMissesAMessageThatArrivesMeanwhile) {
  constexpr std::size_t kMessages = 3000;
  SharingTeam team(side);
  if (!side.first()) {
    for (std::size_t i = 0; i < kMessages; ++i) {
      Endpoint& e = team[i % kEndpoints];
      e.must([&] { return fi_inject(e.ep(), &i, sizeof i, team.peers[i % kEndpoints]); });
      if (i % 16 == 0) team.progress();
    }
    team.meet();
    return;
  }
  std::vector<std::size_t> words(kMessages, kMessages);
  std::thread poster([&] {
    for (std::size_t& word : words) {
      EXPECT_EQ(fi_recv(team.shared_rx.get(), &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &word), 0);
      if (&word - words.data() > 500) std::this_thread::yield();
    }
  });
  for (std::size_t i = 0; i < kMessages; ++i) {
    const auto outcome = team.next();
    if (!outcome || outcome->error) {
      ADD_FAILURE() << "after " << i;
      break;
    }
  }
  poster.join();
  std::sort(words.begin(), words.end());
  for (std::size_t i = 0; i < kMessages; ++i) ASSERT_EQ(words[i], i);
  team.meet();
}

SINGLE_TEST(SharedContext, ACancelledReceiveIsReportedOnce) {
  Sharing sharing;
  unsigned char byte = 0;
  int kept = 0;
  int dropped = 0;
  fid_ep* const rx = sharing.shared_rx.get();
  ASSERT_EQ(fi_recv(rx, &byte, 1, nullptr, FI_ADDR_UNSPEC, &dropped), 0);
  ASSERT_EQ(fi_recv(rx, &byte, 1, nullptr, FI_ADDR_UNSPEC, &kept), 0);
  EXPECT_EQ(fi_cancel(&rx->fid, &dropped), 0);
  EXPECT_EQ(fi_cancel(&rx->fid, &dropped), 0) << "nothing to cancel is no error";
  const auto canceled = sharing.next();
  ASSERT_TRUE(canceled && canceled->error);
  EXPECT_EQ(canceled->failure.op_context, &dropped);
  EXPECT_EQ(canceled->failure.err, FI_ECANCELED);
  const fi_addr_t to = sharing.domain.insert(sharing[1].name());
  sharing[0].must([&] { return fi_inject(sharing[0].ep(), "z", 1, to); });
  const auto received = sharing.next();
  ASSERT_TRUE(received && !received->error);
  EXPECT_EQ(received->entry.op_context, &kept);
  EXPECT_EQ(byte, 'z');
}

SINGLE_TEST(SharedContext, SelectiveQueuesReportReceivesThatAskForIt) {
  Sharing sharing(FI_MSG, FI_SELECTIVE_COMPLETION);
  const fi_addr_t to = sharing.domain.insert(sharing[1].name());
  unsigned char byte = 0;
  int context = 0;
  iovec vector{&byte, 1};
  const fi_msg message{&vector, nullptr, 1, FI_ADDR_UNSPEC, &context, 0};
  fid_ep* const rx = sharing.shared_rx.get();
  ASSERT_EQ(fi_recvmsg(rx, &message, 0), 0);
  sharing[0].must([&] { return fi_inject(sharing[0].ep(), "1", 1, to); });
  EXPECT_TRUE(sharing.silent(std::chrono::milliseconds(90)));
  EXPECT_EQ(byte, '1');
  ASSERT_EQ(fi_recvmsg(rx, &message, FI_COMPLETION), 0);
  sharing[0].must([&] { return fi_inject(sharing[0].ep(), "2", 1, to); });
  const auto received = sharing.next();
  ASSERT_TRUE(received && !received->error);
  EXPECT_EQ(byte, '2');
}

SINGLE_TEST(SharedContext, RefusesWhatOnlyAnEndpointCanDo) {
  Sharing sharing;
  unsigned char byte = 0;
  iovec vector{&byte, 1};
  const fi_msg message{&vector, nullptr, 1, FI_ADDR_UNSPEC, nullptr, 0};
  fid_ep* const rx = sharing.shared_rx.get();
  for (const std::uint64_t flags : {FI_PEEK, FI_MULTI_RECV, FI_CLAIM})
    EXPECT_EQ(fi_recvmsg(rx, &message, flags), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_inject(rx, &byte, 1, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_enable(rx), 0);
  EXPECT_EQ(fi_close(&rx->fid), -FI_EBUSY) << "endpoints use it";
  EXPECT_EQ(fi_close(&sharing.shared_tx.release()->fid), 0) << "endpoints do not need it";
  EXPECT_EQ(fi_ep_bind(sharing[0].ep(), &rx->fid, 0), -FI_EOPBADSTATE) << "the endpoint is enabled";
}

SINGLE_TEST(SharedContext, IsOfferedByHints) {
  const Options options;
  Info hints = make_hints(options);
  hints->ep_attr->rx_ctx_cnt = hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found), 0);
  const Info answer(found);
  EXPECT_EQ(answer->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
  EXPECT_EQ((answer->caps | answer->rx_attr->caps) & FI_MULTI_RECV, 0u) << "the context refuses it";
  EXPECT_EQ(answer->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
  EXPECT_GT(answer->domain_attr->max_ep_srx_ctx, 0u);
  EXPECT_GT(answer->domain_attr->max_ep_stx_ctx, 0u);
  hints->caps |= FI_MULTI_RECV;
  EXPECT_EQ(fi_getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found), -FI_ENODATA);
}

}  // namespace
}  // namespace conformance

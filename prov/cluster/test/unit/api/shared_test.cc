// Queues, counters and address vectors that several endpoints share.
#include <atomic>
#include <thread>

#include "support/yield_processor.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class SharedTest : public ApiTest {
 protected:
  /// An endpoint that is enabled and in the address vector.
  void open_bound(fid_av* av, fid_cq* cq, fid_ep*& endpoint, fi_addr_t& handle,
                  std::initializer_list<std::pair<fid_cntr*, std::uint64_t>> counters = {}) {
    endpoint = open_endpoint();
    ASSERT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    for (const auto& [cntr, flags] : counters) ASSERT_EQ(fi_ep_bind(endpoint, &cntr->fid, flags), 0);
    ASSERT_EQ(fi_enable(endpoint), 0);
    sockaddr_in name{};
    std::size_t size = sizeof name;
    ASSERT_EQ(fi_getname(&endpoint->fid, &name, &size), 0);
    ASSERT_EQ(fi_av_insert(av, &name, 1, &handle, 0, nullptr), 1);
  }

  fi_cq_tagged_entry entry{};
  char buffer[32] = {};
};

TEST_F(SharedTest, ACancelledReceiveOfASharedContextCountsAsAnError) {
  fid_ep* shared = nullptr;
  ASSERT_EQ(fi_srx_context(domain, &info.rx, &shared, this), 0);
  fid_av* const av = open_av();
  fid_cq* const cq = open_cq();
  fid_cntr* const received = open_cntr();
  fid_ep* const endpoint = open_endpoint();
  for (const auto& [object, flags] : std::initializer_list<std::pair<fid_t, std::uint64_t>>{
           {&av->fid, 0}, {&cq->fid, FI_TRANSMIT | FI_RECV}, {&received->fid, FI_RECV}, {&shared->fid, 0}})
    ASSERT_EQ(fi_ep_bind(endpoint, object, flags), 0);
  ASSERT_EQ(fi_enable(endpoint), 0);
  ASSERT_EQ(fi_recv(shared, buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, &entry), 0);
  ASSERT_EQ(fi_cancel(&shared->fid, &entry), 0);
  EXPECT_EQ(fi_cntr_readerr(received), 1u);
  EXPECT_EQ(fi_cntr_read(received), 0u);
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq, &error, 0), 1);
  for (fid_t each : {&endpoint->fid, &shared->fid, &received->fid, &cq->fid, &av->fid})
    EXPECT_EQ(fi_close(each), 0);
}

TEST_F(SharedTest, OneQueueServesManyEndpointsAndOutlivesThem) {
  constexpr int kEndpoints = 3;
  fid_av* av = open_av();
  fid_cq* cq = open_cq();
  fid_ep* endpoints[kEndpoints];
  fi_addr_t handles[kEndpoints];
  for (int i = 0; i < kEndpoints; ++i) {
    ASSERT_NO_FATAL_FAILURE(open_bound(av, cq, endpoints[i], handles[i]));
  }
  for (int i = 0; i < kEndpoints; ++i) {
    ASSERT_EQ(fi_trecv(endpoints[i], buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, 0, ~0ull, &endpoints[i]),
              0);
    ASSERT_EQ(fi_tsend(endpoints[(i + 1) % kEndpoints], "ring", 5, nullptr, handles[i], 5, nullptr), 0);
  }
  int received = 0;
  int sent = 0;
  for (int turn = 0; turn < 100000 && received + sent < 2 * kEndpoints; ++turn) {
    if (fi_cq_read(cq, &entry, 1) != 1) continue;
    ++(entry.flags & FI_RECV ? received : sent);
  }
  EXPECT_EQ(received, kEndpoints);
  EXPECT_EQ(sent, kEndpoints);
  EXPECT_EQ(fi_close(&endpoints[0]->fid), 0);
  EXPECT_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
  EXPECT_EQ(fi_close(&cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&endpoints[1]->fid), 0);
  EXPECT_EQ(fi_close(&endpoints[2]->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(SharedTest, CountersMakeProgressAndCountInjectedMessages) {
  fid_av* av = open_av();
  fid_cq* cq = open_cq();
  fid_cntr* sends = open_cntr();
  fid_cntr* receives = open_cntr();
  fid_ep* endpoints[2];
  fi_addr_t handles[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(
        open_bound(av, cq, endpoints[i], handles[i], {{sends, FI_SEND}, {receives, FI_RECV}}));
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_recv(endpoints[1], buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, &entry), 0);
  }
  ASSERT_EQ(fi_send(endpoints[0], "abc", 4, nullptr, handles[1], nullptr), 0);
  ASSERT_EQ(fi_inject(endpoints[0], "abc", 4, handles[1]), 0);
  EXPECT_EQ(fi_cntr_wait(receives, 2, 1000), 0);
  EXPECT_EQ(fi_cntr_wait(sends, 2, 1000), 0);
  EXPECT_EQ(fi_cntr_readerr(sends), 0u);
  ASSERT_EQ(fi_recv(endpoints[1], buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, &entry), 0);
  EXPECT_EQ(fi_cancel(&endpoints[1]->fid, &entry), 0);
  EXPECT_EQ(fi_cntr_readerr(receives), 1u);
  for (fid_ep* endpoint : endpoints) EXPECT_EQ(fi_close(&endpoint->fid), 0);
  EXPECT_EQ(fi_close(&sends->fid), 0);
  EXPECT_EQ(fi_close(&receives->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(SharedTest, EndpointsOpenAndCloseWhileTheirQueueIsRead) {
  platform.alone = true;
  constexpr int kLives = 200;
  constexpr int kReaders = 2;
  fid_av* av = open_av();
  fid_cq* cq = open_cq();
  sockaddr_in self = raw(host(1, 1));
  info.info.src_addr = &self;
  info.info.src_addrlen = sizeof self;
  fi_addr_t to_self = 0;
  ASSERT_EQ(fi_av_insert(av, &self, 1, &to_self, 0, nullptr), 1);
  std::atomic<bool> over{false};
  std::atomic<int> seen{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        fi_cq_tagged_entry got{};
        if (fi_cq_read(cq, &got, 1) == 1) ++seen;
        cluster::test::yield_processor();
      }
    });
  }
  for (int life = 1; life <= kLives; ++life) {
    fid_ep* endpoint = open_endpoint();
    EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(endpoint), 0);
    EXPECT_EQ(fi_trecv(endpoint, buffer, sizeof buffer, nullptr, to_self, 5, 0, nullptr), 0);
    EXPECT_EQ(fi_tsend(endpoint, "self", 5, nullptr, to_self, 5, nullptr), 0);
    while (seen < 2 * life && !HasFailure()) cluster::test::yield_processor();
    EXPECT_EQ(fi_close(&endpoint->fid), 0);
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(seen, 2 * kLives);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test

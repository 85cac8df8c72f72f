// Endpoints: what must be bound, which calls each state allows, which options can be set.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <thread>

#include "api/ep_options.h"
#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

class EndpointTest : public ApiTest {
 protected:
  EndpointTest() : endpoint(open_endpoint()), av(open_av()), cq(open_cq()) {}
  ~EndpointTest() override {
    EXPECT_EQ(fi_close(&endpoint->fid), 0);
    EXPECT_EQ(fi_close(&av->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
  void reopen() {
    EXPECT_EQ(fi_close(&endpoint->fid), 0);
    endpoint = open_endpoint();
  }
  void bind_all(std::uint64_t flags = FI_TRANSMIT | FI_RECV) {
    EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, flags), 0);
  }

  fid_ep* endpoint;
  fid_av* av;
  fid_cq* cq;
};

TEST_F(EndpointTest, NeedsAnAddressVectorAndQueuesForItsDirections) {
  EXPECT_EQ(fi_enable(endpoint), -FI_ENOAV);
  EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
  EXPECT_EQ(fi_enable(endpoint), -FI_ENOCQ);
  EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_RECV), 0);
  EXPECT_EQ(fi_enable(endpoint), -FI_ENOCQ);
  EXPECT_EQ(platform.kept.lines.size(), 3u) << "each with a word of explanation";
  EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(endpoint), 0);
  EXPECT_EQ(fi_enable(endpoint), 0);
  EXPECT_EQ(platform.built, 1);
}

TEST_F(EndpointTest, OneDirectionNeedsOneQueue) {
  info.info.caps = FI_TAGGED | FI_SEND;
  reopen();
  bind_all(FI_TRANSMIT);
  EXPECT_EQ(fi_enable(endpoint), 0);
}

TEST_F(EndpointTest, CannotBeUsedBeforeItIsEnabled) {
  char byte = 0;
  EXPECT_EQ(fi_tsend(endpoint, &byte, 1, nullptr, 0, 0, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_recv(endpoint, &byte, 1, nullptr, 0, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_cancel(&endpoint->fid, nullptr), -FI_EOPBADSTATE);
  EXPECT_EQ(endpoint->ops->tx_size_left(endpoint), -FI_EOPBADSTATE);
  bind_all();
  ASSERT_EQ(fi_enable(endpoint), 0);
  EXPECT_EQ(fi_recv(endpoint, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(endpoint->ops->tx_size_left(endpoint), 256);
  EXPECT_EQ(endpoint->ops->rx_size_left(endpoint), 256);
}

TEST_F(EndpointTest, BindsOneQueueAndOneCounterPerEvent) {
  bind_all();
  fid_cq* other = open_cq();
  fid_cntr* cntr = open_cntr();
  EXPECT_EQ(fi_ep_bind(endpoint, &other->fid, FI_TRANSMIT), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &other->fid, FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &other->fid, FI_READ), -FI_EBADFLAGS);
  EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &domain->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, FI_SEND), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, FI_SEND), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, FI_RECV), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, FI_READ | FI_WRITE), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &cntr->fid, 0), 0);
  ASSERT_EQ(fi_enable(endpoint), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &other->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_close(&cntr->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&cq->fid), -FI_EBUSY);
  reopen();
  EXPECT_EQ(fi_close(&cntr->fid), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
}

TEST_F(EndpointTest, CountsFromWhenACounterIsBoundToTheEnabledEndpoint) {
  bind_all();
  ASSERT_EQ(fi_enable(endpoint), 0);
  fid_cntr* sends = open_cntr();
  fid_cntr* more = open_cntr();
  EXPECT_EQ(fi_ep_bind(endpoint, &sends->fid, FI_SEND), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &more->fid, FI_SEND), -FI_EINVAL) << "one per event, as before";
  sockaddr_in self{};
  std::size_t size = sizeof self;
  ASSERT_EQ(fi_getname(&endpoint->fid, &self, &size), 0);
  fi_addr_t to = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_av_insert(av, &self, 1, &to, 0, nullptr), 1);
  const std::uint64_t word = 1;
  std::uint64_t got = 0;
  ASSERT_EQ(fi_recv(endpoint, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(endpoint, &word, sizeof word, nullptr, to, nullptr), 0);
  for (int i = 0; i < 1000 && fi_cntr_read(sends) == 0; ++i) continue;
  EXPECT_EQ(fi_cntr_read(sends), 1u) << "reading it makes the progress, too";
  EXPECT_EQ(fi_close(&sends->fid), -FI_EBUSY);
  reopen();
  EXPECT_EQ(fi_close(&sends->fid), 0);
  EXPECT_EQ(fi_close(&more->fid), 0);
}

TEST_F(EndpointTest, TakesASharedTransmitContextWhenItIsEnabled) {
  bind_all();
  ASSERT_EQ(fi_enable(endpoint), 0);
  fid_stx* shared = nullptr;
  ASSERT_EQ(fi_stx_context(domain, nullptr, &shared, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &shared->fid, 0), -FI_EINVAL) << "one, as before";
  EXPECT_EQ(fi_close(&shared->fid), 0) << "the endpoint does not need it";
}

TEST_F(EndpointTest, HasANameBeforeItIsEnabled) {
  std::size_t size = 0;
  EXPECT_EQ(fi_getname(&endpoint->fid, nullptr, &size), -FI_ETOOSMALL);
  ASSERT_EQ(size, sizeof(sockaddr_in));
  sockaddr_in name{};
  EXPECT_EQ(fi_getname(&endpoint->fid, &name, &size), 0);
  EXPECT_EQ(ntohs(name.sin_port), 9000);
  bind_all();
  EXPECT_EQ(fi_enable(endpoint), 0);
  EXPECT_EQ(platform.built, 1);
  EXPECT_EQ(fi_setname(&endpoint->fid, &name, sizeof name), -FI_EOPBADSTATE);
}

TEST_F(EndpointTest, BuildsItsEngineAtTheSourceAddress) {
  sockaddr_in wanted = raw(host(7, 9228));
  info.info.src_addr = &wanted;
  info.info.src_addrlen = sizeof wanted;
  reopen();
  sockaddr_in name{};
  std::size_t size = sizeof name;
  EXPECT_EQ(fi_getname(&endpoint->fid, &name, &size), 0);
  EXPECT_EQ(platform.last_wanted, host(7, 9228));
  info.info.src_addr = nullptr;
  reopen();
  wanted = raw(host(8, 1));
  EXPECT_EQ(fi_setname(&endpoint->fid, &wanted, sizeof wanted), 0);
  EXPECT_EQ(fi_getname(&endpoint->fid, &name, &size), 0);
  EXPECT_EQ(platform.last_wanted, host(8, 1));
}

TEST_F(EndpointTest, ReturnsTheErrorOfBuildingTheEngine) {
  bind_all();
  platform.fail_with = FI_EADDRINUSE;
  EXPECT_EQ(fi_enable(endpoint), -FI_EADDRINUSE);
  std::size_t size = 0;
  EXPECT_EQ(fi_getname(&endpoint->fid, nullptr, &size), -FI_EADDRINUSE);
  platform.fail_with = 0;
  EXPECT_EQ(fi_enable(endpoint), 0);
}

TEST_F(EndpointTest, RefusesOtherTypesAndCompletionLevels) {
  fid_ep* other = nullptr;
  EXPECT_EQ(fi_endpoint(domain, nullptr, &other, nullptr), -FI_EINVAL);
  info.ep.type = FI_EP_SOCK_STREAM;
  EXPECT_EQ(fi_endpoint(domain, &info.info, &other, nullptr), -FI_EINVAL);
  info.ep.type = FI_EP_RDM;
  info.tx.op_flags = FI_COMMIT_COMPLETE;
  EXPECT_EQ(fi_endpoint(domain, &info.info, &other, nullptr), -FI_EBADFLAGS);
  info.tx.op_flags = 0;
  info.rx.op_flags = FI_TRIGGER;
  EXPECT_EQ(fi_endpoint(domain, &info.info, &other, nullptr), -FI_EBADFLAGS);
}

TEST_F(EndpointTest, WorksWithAnInfoThatHasNoAttributes) {
  info.info.tx_attr = nullptr;
  info.info.rx_attr = nullptr;
  info.info.ep_attr = nullptr;
  reopen();
  bind_all();
  EXPECT_EQ(fi_enable(endpoint), 0);
}

TEST_F(EndpointTest, WithRmaEventNoReceiveQueueIsNeeded) {
  info.info.caps |= FI_RMA | FI_RMA_EVENT;
  fid_ep* another = open_endpoint();
  EXPECT_EQ(fi_ep_bind(another, &av->fid, 0), 0);
  EXPECT_EQ(fi_enable(another), -FI_ENOCQ) << "its own operations need one";
  EXPECT_EQ(fi_ep_bind(another, &cq->fid, FI_TRANSMIT), 0);
  EXPECT_EQ(fi_enable(another), 0);
  EXPECT_EQ(fi_close(&another->fid), 0);
}

TEST_F(EndpointTest, InitiatingRmaNeedsATransmitQueue) {
  const auto enable_with = [&](std::uint64_t caps) {
    info.info.caps = caps;
    reopen();
    EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
    return fi_enable(endpoint);
  };
  for (const std::uint64_t kind : {FI_RMA, FI_ATOMIC}) {
    EXPECT_EQ(enable_with(kind), -FI_ENOCQ) << "no direction named: every one";
    EXPECT_EQ(enable_with(kind | FI_READ), -FI_ENOCQ);
    EXPECT_EQ(enable_with(kind | FI_WRITE | FI_REMOTE_WRITE), -FI_ENOCQ);
    EXPECT_EQ(enable_with(kind | FI_REMOTE_READ), 0);
    EXPECT_EQ(enable_with(kind | FI_REMOTE_WRITE), 0);
  }
}

TEST_F(EndpointTest, RemoteAccessHasLimitsOfItsOwn) {
  info.info.caps |= FI_RMA;
  fid_ep* another = open_endpoint();
  std::size_t value = 0;
  std::size_t size = sizeof value;
  EXPECT_EQ(fi_getopt(&another->fid, FI_OPT_ENDPOINT, compat::kOptionInjectRmaSize, &value, &size), 0);
  EXPECT_EQ(value, protocol::kInjectMax);
  value = 8;
  EXPECT_EQ(fi_setopt(&another->fid, FI_OPT_ENDPOINT, compat::kOptionInjectRmaSize, &value, size), 0);
  EXPECT_EQ(fi_getopt(&another->fid, FI_OPT_ENDPOINT, compat::kOptionInjectMessageSize, &value, &size), 0);
  EXPECT_EQ(value, protocol::kInjectMax);
  EXPECT_EQ(fi_ep_bind(another, &av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(another, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(another), 0);
  char bytes[9] = {};
  EXPECT_EQ(fi_inject_write(another, bytes, 9, 0, 0, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&another->fid), 0);
}

TEST_F(EndpointTest, AtomicsHaveLimitsOfTheirOwn) {
  info.info.caps |= FI_ATOMIC;
  fid_ep* another = open_endpoint();
  std::size_t value = 0;
  std::size_t size = sizeof value;
  EXPECT_EQ(fi_getopt(&another->fid, FI_OPT_ENDPOINT, compat::kOptionMaxAtomicSize, &value, &size), 0);
  EXPECT_EQ(value, protocol::kAtomicMax);
  value = 16;
  EXPECT_EQ(fi_setopt(&another->fid, FI_OPT_ENDPOINT, compat::kOptionMaxAtomicSize, &value, size), 0);
  value = 8;
  EXPECT_EQ(fi_setopt(&another->fid, FI_OPT_ENDPOINT, compat::kOptionInjectAtomicSize, &value, size), 0);
  EXPECT_EQ(fi_ep_bind(another, &av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(another, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(another), 0);
  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(another, FI_UINT64, FI_SUM, &count), 0);
  EXPECT_EQ(count, 2u);
  const std::uint64_t operands[3] = {};
  EXPECT_EQ(fi_atomic(another, operands, 3, nullptr, 0, 0, 0, FI_UINT64, FI_SUM, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_inject_atomic(another, operands, 2, 0, 0, 0, FI_UINT64, FI_SUM), -FI_EINVAL);
  EXPECT_EQ(fi_close(&another->fid), 0);
}

TEST_F(EndpointTest, OptionsCanBeReadAndReduced) {
  std::size_t value = 0;
  std::size_t size = sizeof value;
  EXPECT_EQ(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, compat::kOptionInjectTaggedSize, &value, &size), 0);
  EXPECT_EQ(value, protocol::kInjectMax);
  value += 1;
  EXPECT_EQ(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, compat::kOptionInjectTaggedSize, &value, size),
            -FI_EINVAL);
  value = 8;
  EXPECT_EQ(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, compat::kOptionInjectTaggedSize, &value, size), 0);
  EXPECT_EQ(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, compat::kOptionMaxMessageSize, &value, size), 0);
  value = 1 << 20;
  EXPECT_EQ(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, size), 0);
  value = 0;
  EXPECT_EQ(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &size), 0);
  EXPECT_EQ(value, 1u << 20);
  bind_all();
  ASSERT_EQ(fi_enable(endpoint), 0);
  char bytes[9] = {};
  EXPECT_EQ(fi_tinject(endpoint, bytes, 9, 0, 0), -FI_EINVAL);
  EXPECT_EQ(fi_send(endpoint, bytes, 9, nullptr, 0, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, size), 0);
}

TEST_F(EndpointTest, UnknownOptionsAndSmallBuffersAreRefused) {
  std::size_t value = 0;
  std::size_t size = 4;
  EXPECT_EQ(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &size), -FI_ETOOSMALL);
  EXPECT_EQ(size, sizeof value);
  EXPECT_EQ(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &size), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, 4711, &value, &size), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_getopt(&endpoint->fid, 1234, FI_OPT_MIN_MULTI_RECV, &value, &size), -FI_ENOPROTOOPT);
  EXPECT_EQ(fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 4), -FI_EINVAL);
}

TEST_F(EndpointTest, OperationFlagsCanBeReadAndSetPerDirection) {
  std::uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
  EXPECT_EQ(fi_control(&endpoint->fid, FI_SETOPSFLAG, &flags), 0);
  flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&endpoint->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, FI_DELIVERY_COMPLETE);
  flags = FI_RECV;
  EXPECT_EQ(fi_control(&endpoint->fid, FI_GETOPSFLAG, &flags), 0);
  EXPECT_EQ(flags, 0u);
  flags = FI_TRANSMIT | FI_RECV;
  EXPECT_EQ(fi_control(&endpoint->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
  flags = FI_TRANSMIT | FI_MATCH_COMPLETE;
  EXPECT_EQ(fi_control(&endpoint->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
  EXPECT_EQ(fi_control(&endpoint->fid, FI_GETWAIT, &flags), -FI_ENOSYS);
}

TEST_F(EndpointTest, ObjectsOfAnotherDomainCannotBeBound) {
  fid_domain* second = nullptr;
  ASSERT_EQ(fi_domain(fabric, &info.info, &second, nullptr), 0);
  std::swap(domain, second);
  fid_cq* foreign_cq = open_cq();
  fid_av* foreign_av = open_av();
  std::swap(domain, second);
  EXPECT_EQ(fi_ep_bind(endpoint, &foreign_cq->fid, FI_RECV), -FI_EINVAL);
  EXPECT_EQ(fi_ep_bind(endpoint, &foreign_av->fid, 0), -FI_EINVAL);
  EXPECT_EQ(fi_close(&foreign_cq->fid), 0);
  EXPECT_EQ(fi_close(&foreign_av->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test

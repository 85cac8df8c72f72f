// libfabric's inline functions check few of the pointers that they follow: none may be null.
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>

#include "unit/api/api_world.h"

namespace cluster::api::test {
namespace {

/// An ops table is its size, then function pointers.
template <typename Table>
void expect_full(const Table* table, const char* name, std::size_t size = sizeof(Table)) {
  ASSERT_NE(table, nullptr) << name;
  ASSERT_EQ(table->size, size) << name;
  for (std::size_t at = sizeof(std::size_t); at < size; at += sizeof(void*)) {
    void* entry = nullptr;
    std::memcpy(&entry, reinterpret_cast<const std::byte*>(table) + at, sizeof entry);
    EXPECT_NE(entry, nullptr) << name << ", entry " << at / sizeof(void*);
  }
}

class OpsTablesTest : public ApiTest {
 protected:
  void expect_full_endpoint(const fid_ep* endpoint) {
    expect_full(endpoint->fid.ops, "ep fid");
    expect_full(endpoint->ops, "ep");
    expect_full(endpoint->cm, "cm");
    expect_full(endpoint->msg, "msg");
    expect_full(endpoint->rma, "rma");
    expect_full(endpoint->tagged, "tagged");
    expect_full(endpoint->atomic, "atomic");
    expect_full(endpoint->collective, "collective");
  }
};

TEST_F(OpsTablesTest, AreFullInEveryObject) {
  expect_full(fabric->fid.ops, "fabric fid");
  expect_full(fabric->ops, "fabric");
  expect_full(domain->fid.ops, "domain fid");
  expect_full(domain->ops, "domain");
  expect_full(domain->mr, "mr");
  fi_eq_attr attributes{};
  fid_eq* eq = nullptr;
  ASSERT_EQ(fi_eq_open(fabric, &attributes, &eq, nullptr), 0);
  expect_full(eq->fid.ops, "eq fid");
  expect_full(eq->ops, "eq");
  EXPECT_EQ(fi_close(&eq->fid), 0);
  fid_av* av = open_av();
  expect_full(av->fid.ops, "av fid");
  expect_full(av->ops, "av", 88);  // with what libfabric 1.20 appended
  EXPECT_EQ(fi_close(&av->fid), 0);
  fid_cntr* cntr = open_cntr();
  expect_full(cntr->fid.ops, "cntr fid");
  expect_full(cntr->ops, "cntr");
  EXPECT_EQ(fi_close(&cntr->fid), 0);
  fi_poll_attr polling{};
  fid_poll* poll_set = nullptr;
  ASSERT_EQ(fi_poll_open(domain, &polling, &poll_set), 0);
  expect_full(poll_set->fid.ops, "poll set fid");
  expect_full(poll_set->ops, "poll set");
  EXPECT_EQ(fi_close(&poll_set->fid), 0);
  for (const fi_cq_format format : {FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
                                    FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED}) {
    fid_cq* cq = open_cq(format);
    expect_full(cq->fid.ops, "cq fid");
    expect_full(cq->ops, "cq");
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
}

TEST_F(OpsTablesTest, AreFullInEveryStateOfAnEndpoint) {
  fid_ep* endpoint = open_endpoint();
  expect_full_endpoint(endpoint);
  fid_av* av = open_av();
  fid_cq* cq = open_cq();
  EXPECT_EQ(fi_ep_bind(endpoint, &av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(endpoint), 0);
  expect_full_endpoint(endpoint);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  info.info.caps = 0;
  endpoint = open_endpoint();
  expect_full_endpoint(endpoint);
  EXPECT_EQ(fi_send(endpoint, nullptr, 0, nullptr, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

TEST_F(OpsTablesTest, UnsupportedCallsReturnEnosys) {
  fid_ep* endpoint = open_endpoint();
  EXPECT_EQ(fi_read(endpoint, nullptr, 0, nullptr, 0, 0, 0, nullptr), -FI_ENOSYS);
  EXPECT_EQ(fi_barrier(endpoint, 0, nullptr), -FI_ENOSYS);
  std::size_t count = 0;
  EXPECT_EQ(fi_atomicvalid(endpoint, FI_INT32, FI_SUM, &count), -FI_ENOSYS);
  EXPECT_EQ(fi_shutdown(endpoint, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&endpoint->fid), 0);
  EXPECT_EQ(fi_scalable_ep(domain, &info.info, &endpoint, nullptr), -FI_ENOSYS);
}

TEST_F(OpsTablesTest, ObjectsKeepTheApplicationsContextAndClass) {
  EXPECT_EQ(fabric->fid.context, this);
  EXPECT_EQ(fabric->fid.fclass, std::size_t{FI_CLASS_FABRIC});
  EXPECT_EQ(domain->fid.context, this);
  EXPECT_EQ(domain->fid.fclass, std::size_t{FI_CLASS_DOMAIN});
  fid_cq* cq = open_cq();
  EXPECT_EQ(cq->fid.context, this);
  EXPECT_EQ(cq->fid.fclass, std::size_t{FI_CLASS_CQ});
  EXPECT_EQ(fi_close(&domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&fabric->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&cq->fid), 0);
}

TEST_F(OpsTablesTest, TrywaitTakesOnlyObjectsThatCanWait) {
  fid_cq* spinning = open_cq();
  fid_cq* waiting = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC);
  fid* objects[] = {&spinning->fid};
  EXPECT_EQ(fi_trywait(fabric, objects, 1), -FI_EINVAL);
  objects[0] = &waiting->fid;
  EXPECT_EQ(fi_trywait(fabric, objects, 1), -FI_EAGAIN);
  objects[0] = &domain->fid;
  EXPECT_EQ(fi_trywait(fabric, objects, 1), -FI_EINVAL);
  EXPECT_EQ(fi_close(&spinning->fid), 0);
  EXPECT_EQ(fi_close(&waiting->fid), 0);
}

}  // namespace
}  // namespace cluster::api::test

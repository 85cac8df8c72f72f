// One thread that sends 8-byte tagged messages, and then writes 8 bytes, into private memory and into a shared
// mapping, from one endpoint of this process to another, as two processes of one node would, for the test that
// counts what that costs. Each step stands in a function
// of its own, by which the counting tool knows it. Deterministic: no other process takes part.
//
//   budget_calls EXCHANGES
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

constexpr std::uint64_t kTag = 7;
constexpr std::uint64_t kKey = 1, kSharedKey = 2;
constexpr int kWarmUp = 3000;  ///< past first contact, and every table and pool at its size
constexpr int kReadsMax = 1'000'000;

void check(const char* what, long result) {
  if (result >= 0) return;
  std::fprintf(stderr, "budget_calls: %s: %s\n", what, fi_strerror(static_cast<int>(-result)));
  std::exit(1);
}

struct Side {
  fid_ep* ep = nullptr;
  fid_cq* queue = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::uint64_t data = 0;
};

struct Fabric {
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;

  Fabric() {
    fi_info* hints = fi_allocinfo();
    hints->caps = FI_TAGGED | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = ::strdup("cluster");
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info));
    fi_freeinfo(hints);
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
    check("fi_domain", fi_domain(fabric, info, &domain, nullptr));
    fi_av_attr attributes{};
    check("fi_av_open", fi_av_open(domain, &attributes, &av, nullptr));
  }

  Side open() const {
    Side side;
    fi_cq_attr attributes{};
    attributes.format = FI_CQ_FORMAT_TAGGED;
    check("fi_cq_open", fi_cq_open(domain, &attributes, &side.queue, nullptr));
    check("fi_endpoint", fi_endpoint(domain, info, &side.ep, nullptr));
    check("fi_ep_bind", fi_ep_bind(side.ep, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(side.ep, &side.queue->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(side.ep));
    return side;
  }

  fi_addr_t address_of(const Side& side) const {
    char name[256];
    std::size_t size = sizeof name;
    check("fi_getname", fi_getname(&side.ep->fid, name, &size));
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    check("fi_av_insert", fi_av_insert(av, name, 1, &address, 0, nullptr) - 1);
    return address;
  }
};

}  // namespace

// The steps; external names, for the tool.
[[gnu::noinline]] void budget_receive(Side& receiver) {
  check("fi_trecv", fi_trecv(receiver.ep, &receiver.data, 8, nullptr, receiver.peer, kTag, 0, &receiver));
}

[[gnu::noinline]] void budget_send(Side& sender) {
  check("fi_tsend", fi_tsend(sender.ep, &sender.data, 8, nullptr, sender.peer, kTag, &sender));
}

[[gnu::noinline]] bool budget_read_sent(Side& sender) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(sender.queue, &entry, 1) == 1;
}

[[gnu::noinline]] bool budget_read_received(Side& receiver) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(receiver.queue, &entry, 1) == 1;
}

[[gnu::noinline]] void budget_write(Side& initiator) {
  check("fi_write", fi_write(initiator.ep, &initiator.data, 8, nullptr, initiator.peer, 0, kKey, &initiator));
}

[[gnu::noinline]] void budget_take_write(Side& target) { fi_cq_read(target.queue, nullptr, 0); }

[[gnu::noinline]] bool budget_read_written(Side& initiator) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(initiator.queue, &entry, 1) == 1;
}

[[gnu::noinline]] void budget_store(Side& initiator) {
  check("fi_write",
        fi_write(initiator.ep, &initiator.data, 8, nullptr, initiator.peer, 0, kSharedKey, &initiator));
}

[[gnu::noinline]] void budget_load(Side& initiator) {
  check("fi_read",
        fi_read(initiator.ep, &initiator.data, 8, nullptr, initiator.peer, 0, kSharedKey, &initiator));
}

[[gnu::noinline]] bool budget_read_accessed(Side& initiator) {
  fi_cq_tagged_entry entry;
  return fi_cq_read(initiator.queue, &entry, 1) == 1;
}

[[gnu::noinline]] void budget_read_nothing(Side& receiver) {
  fi_cq_tagged_entry entry;
  if (fi_cq_read(receiver.queue, &entry, 1) != -FI_EAGAIN) check("an idle queue", -FI_EOTHER);
}

namespace {

template <typename Read>
void await(Side& side, Side& other, Read&& read) {
  for (int reads = 0; !read(side); ++reads) {
    if (reads == kReadsMax) check("a completion", -FI_ETIMEDOUT);
    fi_cq_read(other.queue, nullptr, 0);
  }
}

void exchange(Side& sender, Side& receiver) {
  ++sender.data;
  budget_receive(receiver);
  budget_send(sender);
  await(sender, receiver, budget_read_sent);
  await(receiver, sender, budget_read_received);
  budget_read_nothing(receiver);
  if (receiver.data != sender.data) check("the data", -FI_EOTHER);
}

/// The target's last look, which finds nothing, shows the initiator how far it has come. One look more is
/// needed where the progress thread holds the engine just then.
void put(Side& initiator, Side& target) {
  ++initiator.data;
  budget_write(initiator);
  await(target, initiator, [&](Side&) {
    budget_take_write(target);
    return target.data == initiator.data;
  });
  fi_cq_read(target.queue, nullptr, 0);
  await(initiator, target, budget_read_written);
}

/// The target takes no part.
void store_and_load(Side& initiator, Side& target, const volatile std::uint64_t& shared) {
  const std::uint64_t written = ++initiator.data;
  budget_store(initiator);
  await(initiator, target, budget_read_accessed);
  if (shared != written) check("the data", -FI_EOTHER);
  initiator.data = 0;
  budget_load(initiator);
  await(initiator, target, budget_read_accessed);
  if (initiator.data != written) check("the data that was read", -FI_EOTHER);
}

}  // namespace

[[gnu::noinline]] void budget_accesses(Side& initiator, Side& target, const std::uint64_t& shared,
                                       int count) {
  for (int i = 0; i < count; ++i) store_and_load(initiator, target, shared);
}

[[gnu::noinline]] void budget_puts(Side& initiator, Side& target, int count) {
  for (int i = 0; i < count; ++i) put(initiator, target);
}

[[gnu::noinline]] void budget_exchanges(Side& sender, Side& receiver, int count) {
  for (int i = 0; i < count; ++i) exchange(sender, receiver);
}

int main(int argc, char** argv) {
  const int exchanges = argc == 2 ? std::atoi(argv[1]) : 0;
  if (exchanges < 1) {
    std::fprintf(stderr, "usage: budget_calls EXCHANGES\n");
    return 2;
  }
  const Fabric fabric;
  Side sender = fabric.open(), receiver = fabric.open();
  sender.peer = fabric.address_of(receiver);
  receiver.peer = fabric.address_of(sender);
  for (int i = 0; i < kWarmUp; ++i) exchange(sender, receiver);
  budget_exchanges(sender, receiver, exchanges);
  fid_mr* region = nullptr;
  check("fi_mr_reg", fi_mr_reg(fabric.domain, &receiver.data, sizeof receiver.data, FI_REMOTE_WRITE, 0, kKey,
                               0, &region, nullptr));
  check("fi_write", fi_write(sender.ep, &sender.data, 8, nullptr, sender.peer, 0, kKey, &sender));
  await(sender, receiver, budget_read_written);  // the way to the region is found
  for (int i = 0; i < kWarmUp; ++i) put(sender, receiver);
  budget_puts(sender, receiver, exchanges);
  check("fi_close", fi_close(&region->fid));
  const int file = ::memfd_create("budget_calls", MFD_CLOEXEC);
  check("ftruncate", ::ftruncate(file, 4096));
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  check("mmap", page == MAP_FAILED ? -FI_ENOMEM : 0);
  auto& shared = *static_cast<std::uint64_t*>(page);
  check("fi_mr_reg", fi_mr_reg(fabric.domain, &shared, sizeof shared, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
                               kSharedKey, 0, &region, nullptr));
  for (int i = 0; i < kWarmUp; ++i) store_and_load(sender, receiver, shared);
  budget_accesses(sender, receiver, shared, exchanges);
  check("fi_close", fi_close(&region->fid));
  for (fid* object : {&sender.ep->fid, &receiver.ep->fid, &sender.queue->fid, &receiver.queue->fid,
                      &fabric.av->fid, &fabric.domain->fid, &fabric.fabric->fid}) {
    check("fi_close", fi_close(object));
  }
  fi_freeinfo(fabric.info);
  return 0;
}

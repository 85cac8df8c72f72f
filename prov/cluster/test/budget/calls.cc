// One thread that sends 8-byte tagged messages from one endpoint of this process to another, as two
// processes of one node would, for the test that counts what that costs. Each step stands in a function
// of its own, by which the counting tool knows it. Deterministic: no other process takes part.
//
//   budget_calls EXCHANGES
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

constexpr std::uint64_t kTag = 7;
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
    hints->caps = FI_TAGGED;
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

}  // namespace

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
  for (fid* object : {&sender.ep->fid, &receiver.ep->fid, &sender.queue->fid, &receiver.queue->fid,
                      &fabric.av->fid, &fabric.domain->fid, &fabric.fabric->fid}) {
    check("fi_close", fi_close(object));
  }
  fi_freeinfo(fabric.info);
  return 0;
}

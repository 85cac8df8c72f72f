// What the programs that count calls share: one end of an exchange, and the objects of the fabric under it. Each failure
// ends the program.
#pragma once

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

namespace budget {

constexpr int kReadsMax = 1'000'000;

inline void check(const char* what, long result) {
  if (result >= 0) return;
  std::fprintf(stderr, "%s: %s\n", what, fi_strerror(static_cast<int>(-result)));
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

  explicit Fabric(std::uint64_t caps) {
    fi_info* hints = fi_allocinfo();
    hints->caps = caps;
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

  /// The address of an endpoint of this or of another fabric.
  fi_addr_t address_of(const Side& side) const {
    char name[256];
    std::size_t size = sizeof name;
    check("fi_getname", fi_getname(&side.ep->fid, name, &size));
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    check("fi_av_insert", fi_av_insert(av, name, 1, &address, 0, nullptr) - 1);
    return address;
  }

  /// After its endpoints.
  void close() {
    for (fid* object : {&av->fid, &domain->fid, &fabric->fid}) check("fi_close", fi_close(object));
    fi_freeinfo(info);
  }
};

inline void close(Side& side) {
  for (fid* object : {&side.ep->fid, &side.queue->fid}) check("fi_close", fi_close(object));
}

}  // namespace budget

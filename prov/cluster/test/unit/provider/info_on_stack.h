// A fi_info with all its parts in one object, as in callers that build hints on the stack. The space after
// the domain attributes holds the fields that later versions of libfabric appended.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>

namespace cluster::provider {

struct InfoOnStack {
  InfoOnStack() {
    info.tx_attr = &tx;
    info.rx_attr = &rx;
    info.ep_attr = &ep;
    info.domain_attr = &domain.attributes;
    info.fabric_attr = &fabric;
  }
  InfoOnStack(const InfoOnStack&) = delete;
  InfoOnStack& operator=(const InfoOnStack&) = delete;

  fi_info info{};
  fi_tx_attr tx{};
  fi_rx_attr rx{};
  fi_ep_attr ep{};
  struct {
    fi_domain_attr attributes{};
    std::byte tail[64] = {};
  } domain;
  fi_fabric_attr fabric{};
};

}  // namespace cluster::provider

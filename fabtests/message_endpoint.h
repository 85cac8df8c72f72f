// The objects that an endpoint of a test program needs to exchange messages: an address vector and one completion
// queue, by libfabric's interface alone. Programs that need more bind it before they enable the endpoint.
#pragma once

#include <errno.h>  // program_invocation_short_name
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace fabtests {

/// Ends the program with a line of text unless the call succeeded.
inline void must(long status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
               fi_strerror(static_cast<int>(-status)));
  std::exit(1);
}

class MessageEndpoint {
 public:
  MessageEndpoint(const MessageEndpoint&) = delete;
  MessageEndpoint& operator=(const MessageEndpoint&) = delete;

  /// The endpoint's address as hex digits.
  std::string name() {
    unsigned char bytes[64];
    std::size_t size = sizeof bytes;
    must(fi_getname(&endpoint_->fid, bytes, &size), "fi_getname");
    std::string digits;
    for (std::size_t i = 0; i < size; ++i) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", bytes[i]);
      digits += two;
    }
    return digits;
  }
  /// The peer whose name() these digits are.
  fi_addr_t insert(const std::string& digits) {
    std::vector<unsigned char> bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes.push_back(static_cast<unsigned char>(std::strtoul(digits.substr(i, 2).c_str(), nullptr, 16)));
    }
    fi_addr_t peer = FI_ADDR_UNSPEC;
    if (fi_av_insert(av_, bytes.data(), 1, &peer, 0, nullptr) != 1) must(-FI_EINVAL, "fi_av_insert");
    return peer;
  }

 protected:
  /// `port`: that of the endpoint; null: any. `wait`: how the owner waits for the completion queue.
  explicit MessageEndpoint(std::uint64_t capabilities = FI_MSG, const char* port = nullptr,
                           fi_wait_obj wait = FI_WAIT_NONE) {
    fi_info* const hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = capabilities;
    hints->fabric_attr->prov_name = strdup("cluster");
    const std::uint64_t flags = port != nullptr ? FI_SOURCE : 0;
    must(fi_getinfo(FI_VERSION(1, 15), nullptr, port, flags, hints, &info_), "fi_getinfo");
    fi_freeinfo(hints);
    must(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
    must(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
    fi_av_attr av{};
    must(fi_av_open(domain_, &av, &av_, nullptr), "fi_av_open");
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_MSG;
    cq.wait_obj = wait;
    must(fi_cq_open(domain_, &cq, &cq_, nullptr), "fi_cq_open");
    must(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
    must(fi_ep_bind(endpoint_, &av_->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(endpoint_, &cq_->fid, FI_SEND | FI_RECV), "fi_ep_bind");
  }
  ~MessageEndpoint() { fi_freeinfo(info_); }
  /// Closes what this class has opened; what was bound besides is closed after the endpoint and before the fabric.
  void close_endpoint() {
    for (fid* object : {&endpoint_->fid, &cq_->fid, &av_->fid, &domain_->fid})
      must(fi_close(object), "fi_close");
  }

  fi_info* info_ = nullptr;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_ep* endpoint_ = nullptr;
};

}  // namespace fabtests

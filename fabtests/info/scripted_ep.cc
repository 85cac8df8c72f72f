// An endpoint that executes the orders it reads, a line each, and is idle in between: as a process that
// computes. Only libfabric's interface is used.
//
//   name           prints the endpoint's address, as hex digits
//   peer HEX       the one to talk to from now on
//   send N B       sends N messages of B bytes and waits until the peer's library has them
//   receive N      takes N messages, whose bytes must be those that were sent
//
// Each is answered by one line. It ends with its input.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBytesMax = 1 << 20;

void must(long status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "scripted: %s: %s\n", what, fi_strerror(static_cast<int>(-status)));
  std::exit(1);
}

fi_info* find() {
  fi_info* hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG;
  hints->fabric_attr->prov_name = strdup("cluster");
  fi_info* info = nullptr;
  must(fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info), "fi_getinfo");
  fi_freeinfo(hints);
  return info;
}

class ScriptedEndpoint {
 public:
  ScriptedEndpoint() : info_(find()) {
    must(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
    must(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
    fi_av_attr av{};
    must(fi_av_open(domain_, &av, &av_, nullptr), "fi_av_open");
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_MSG;
    must(fi_cq_open(domain_, &cq, &cq_, nullptr), "fi_cq_open");
    must(fi_endpoint(domain_, info_, &endpoint_, nullptr), "fi_endpoint");
    must(fi_ep_bind(endpoint_, &av_->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(endpoint_, &cq_->fid, FI_SEND | FI_RECV), "fi_ep_bind");
    must(fi_enable(endpoint_), "fi_enable");
  }
  ~ScriptedEndpoint() {
    fi_close(&endpoint_->fid);
    fi_close(&cq_->fid);
    fi_close(&av_->fid);
    fi_close(&domain_->fid);
    fi_close(&fabric_->fid);
    fi_freeinfo(info_);
  }
  ScriptedEndpoint(const ScriptedEndpoint&) = delete;
  ScriptedEndpoint& operator=(const ScriptedEndpoint&) = delete;

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

  void peer(const std::string& digits) {
    std::vector<unsigned char> bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      bytes.push_back(static_cast<unsigned char>(std::strtoul(digits.substr(i, 2).c_str(), nullptr, 16)));
    }
    if (fi_av_insert(av_, bytes.data(), 1, &peer_, 0, nullptr) != 1) must(-FI_EINVAL, "fi_av_insert");
  }

  void send(int count, std::size_t bytes) {
    const unsigned first = ++orders_;
    for (std::size_t i = 0; i < bytes; ++i) buffer_[i] = expected(first, i);
    for (int i = 0; i < count; ++i) {
      complete([&] { return fi_send(endpoint_, buffer_.data(), bytes, nullptr, peer_, nullptr); });
    }
  }

  void receive(int count) {
    for (int i = 0; i < count; ++i) {
      std::fill(buffer_.begin(), buffer_.end(), 0);
      const std::size_t size = complete([&] {
        return fi_recv(endpoint_, buffer_.data(), buffer_.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
      });
      for (std::size_t j = 1; j < size; ++j) {
        if (buffer_[j] != expected(buffer_[0], j)) must(-FI_EIO, "a message with other bytes than were sent");
      }
    }
  }

 private:
  /// Byte `at` of a message: what follows from the first.
  static unsigned char expected(unsigned first, std::size_t at) {
    return static_cast<unsigned char>(first + at * 7 + at / 256);
  }

  /// Bytes of what completed.
  template <typename Post>
  std::size_t complete(Post&& post) {
    fi_cq_msg_entry entry{};
    long status;
    while ((status = post()) == -FI_EAGAIN) fi_cq_read(cq_, &entry, 0);
    must(status, "post");
    while ((status = fi_cq_read(cq_, &entry, 1)) == -FI_EAGAIN) continue;
    must(status, "fi_cq_read");
    return entry.len;
  }

  fi_info* info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_ep* endpoint_ = nullptr;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  unsigned orders_ = 0;
  std::vector<unsigned char> buffer_ = std::vector<unsigned char>(kBytesMax);
};

}  // namespace

int main() {
  ScriptedEndpoint scripted;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string order, argument;
    std::size_t bytes = 0;
    words >> order >> argument >> bytes;
    if (order == "peer") scripted.peer(argument);
    if (order == "send") scripted.send(std::atoi(argument.c_str()), std::min(bytes, kBytesMax));
    if (order == "receive") scripted.receive(std::atoi(argument.c_str()));
    std::cout << (order == "name" ? scripted.name() : "done") << std::endl;
  }
}

// The objects open and close in every core: what comes back from fi_getinfo is good for something.
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <string>

#include "getinfo_checks.h"

namespace load {
namespace {

/// Everything an endpoint needs, closed in the order that libfabric asks for.
class Objects {
 public:
  int open(const LibfabricLibrary& core, fi_info* info) {
    if (const int error = core.fabric(info->fabric_attr, &fabric_, nullptr)) return error;
    if (const int error = fi_domain(fabric_, info, &domain_, nullptr)) return error;
    fi_av_attr book{};
    if (const int error = fi_av_open(domain_, &book, &book_, nullptr)) return error;
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    if (const int error = fi_cq_open(domain_, &queue, &queue_, nullptr)) return error;
    if (const int error = fi_endpoint(domain_, info, &endpoint_, nullptr)) return error;
    if (const int error = fi_ep_bind(endpoint_, &book_->fid, 0)) return error;
    if (const int error = fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV)) return error;
    return fi_enable(endpoint_);
  }
  int close() {
    int failed = 0;
    const auto one = [&](auto*& object) {
      if (object != nullptr && fi_close(&object->fid) != 0) ++failed;
      object = nullptr;
    };
    one(endpoint_);
    one(queue_);
    one(book_);
    one(domain_);
    one(fabric_);
    return failed;
  }
  fid_ep* endpoint() { return endpoint_; }

 private:
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* book_ = nullptr;
  fid_cq* queue_ = nullptr;
  fid_ep* endpoint_ = nullptr;
};

GetinfoResult ask_for_loopback(const LibfabricLibrary& core, const char* service) {
  return ask(core.calls,
             {.version = core.version, .node = "127.0.0.1", .service = service, .flags = FI_SOURCE}, nullptr);
}

/// The port that `endpoint` has, or 0.
unsigned port_of(fid_ep* endpoint, Expectations& verdict) {
  std::size_t size = 0;
  const int error = fi_getname(&endpoint->fid, nullptr, &size);
  verdict.expect(error == -FI_ETOOSMALL && size == 16, "its name is asked for in two steps");
  sockaddr_in name{};
  size = sizeof name;
  verdict.expect(fi_getname(&endpoint->fid, &name, &size) == 0, "fi_getname succeeds");
  return ntohs(name.sin_port);
}

}  // namespace

void check_open_endpoint(const LibfabricLibrary& core, Expectations& verdict) {
  const GetinfoResult answer = ask_for_loopback(core, nullptr);
  if (answer.list == nullptr) return;  // already reported
  Objects first;
  const int error = first.open(core, answer.list.get());
  verdict.expect(error == 0, "an endpoint opens, not %d", error);
  const unsigned port = error == 0 ? port_of(first.endpoint(), verdict) : 0;
  if (port != 0) {
    const GetinfoResult same = ask_for_loopback(core, std::to_string(port).c_str());
    verdict.expect(same.list != nullptr, "a port in use is no matter for fi_getinfo");
    Objects second;
    const int in_use = same.list == nullptr ? 0 : second.open(core, same.list.get());
    verdict.expect(in_use == -FI_EADDRINUSE, "a port in use is refused as such, not %d", in_use);
    verdict.expect(second.close() == 0, "what was opened before that closes");
  }
  verdict.expect(first.close() == 0, "all objects close");
}

}  // namespace load

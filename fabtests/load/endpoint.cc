// The objects open and close in every core: what comes back from fi_getinfo is good for something.
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include "answers.h"

namespace load {
namespace {

/// Closes what it holds, and remembers whether that worked.
template <typename Object>
class Held {
 public:
  Object* object = nullptr;
  Object** out() { return &object; }
  int close() { return object == nullptr ? 0 : fi_close(&object->fid); }
};

struct Objects {
  Held<fid_fabric> fabric;
  Held<fid_domain> domain;
  Held<fid_av> book;
  Held<fid_cq> queue;
  Held<fid_ep> endpoint;
};

int open_all(const Core& core, fi_info* info, Objects& objects) {
  if (const int error = core.fabric(info->fabric_attr, objects.fabric.out(), nullptr)) return error;
  if (const int error = fi_domain(objects.fabric.object, info, objects.domain.out(), nullptr)) return error;
  fi_av_attr book{};
  if (const int error = fi_av_open(objects.domain.object, &book, objects.book.out(), nullptr)) return error;
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_TAGGED;
  if (const int error = fi_cq_open(objects.domain.object, &queue, objects.queue.out(), nullptr)) return error;
  if (const int error = fi_endpoint(objects.domain.object, info, objects.endpoint.out(), nullptr))
    return error;
  if (const int error = fi_ep_bind(objects.endpoint.object, &objects.book.object->fid, 0)) return error;
  const std::uint64_t both = FI_TRANSMIT | FI_RECV;
  if (const int error = fi_ep_bind(objects.endpoint.object, &objects.queue.object->fid, both)) return error;
  return fi_enable(objects.endpoint.object);
}

}  // namespace

void open_an_endpoint(const Core& core, Verdict& verdict) {
  const Answer answer =
      ask(core.calls, {.version = core.version, .node = "127.0.0.1", .flags = FI_SOURCE}, nullptr);
  if (answer.list == nullptr) return;  // has been complained about already
  Objects objects;
  const int error = open_all(core, answer.list.get(), objects);
  verdict.expect(error == 0, "an endpoint opens, not %d", error);
  if (error == 0) {
    std::size_t size = 0;
    const int short_error = fi_getname(&objects.endpoint.object->fid, nullptr, &size);
    verdict.expect(short_error == -FI_ETOOSMALL && size == 16, "its name is asked for in two steps");
    sockaddr_storage name{};
    verdict.expect(fi_getname(&objects.endpoint.object->fid, &name, &size) == 0, "its name is told");
  }
  verdict.expect(objects.endpoint.close() == 0, "the endpoint closes");
  verdict.expect(objects.queue.close() == 0 && objects.book.close() == 0, "queue and address vector close");
  verdict.expect(objects.domain.close() == 0 && objects.fabric.close() == 0, "domain and fabric close");
}

}  // namespace load

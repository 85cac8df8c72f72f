#include "endpoints.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace perf {
namespace {

constexpr std::size_t kContexts = 8192;  ///< more than are ever under way at a time
constexpr int kReadMax = 16;
constexpr int kBlockMilliseconds = 100;
constexpr std::uint64_t kOutKey = 11, kInKey = 12;

fi_info* ask(const Request& request) {
  fi_info* hints = fi_allocinfo();
  hints->caps = FI_TAGGED | (request.rma ? FI_RMA : 0) | (request.atomic ? FI_ATOMIC : 0);
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = request.threading;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->fabric_attr->prov_name = ::strdup(request.provider.c_str());
  const char* node = request.node.empty() ? nullptr : request.node.c_str();
  fi_info* list = nullptr;
  const int error = fi_getinfo(FI_VERSION(1, 15), node, nullptr, node ? FI_SOURCE : 0, hints, &list);
  fi_freeinfo(hints);
  if (error == -FI_ENODATA) {
    throw NotOffered("provider '" + request.provider + "' does not offer " +
                     (request.atomic ? "atomics"
                      : request.rma  ? "remote memory access"
                                     : "tagged messages") +
                     (node ? " at " + request.node : "") + " here");
  }
  if (error != 0) Endpoints::fail("fi_getinfo", error);
  return list;
}

template <typename Object, typename Open>
Owned<Object> opened(const char* what, Open&& open) {
  Object* object = nullptr;
  if (const int error = open(&object)) Endpoints::fail(what, error);
  return Owned<Object>(object);
}

void check(const char* what, int result) {
  if (result != 0) Endpoints::fail(what, result);
}

}  // namespace

Memory::Memory(std::size_t size, bool shared) : size_(size) {
  const int file = shared ? ::memfd_create("fabric_perf", MFD_CLOEXEC) : -1;
  if (shared && (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0))
    throw std::runtime_error("no file in memory of " + std::to_string(size) + " bytes");
  const int flags = shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file, 0);
  file_ = file;
  if (data == MAP_FAILED) throw std::runtime_error("no memory for " + std::to_string(size) + " bytes");
  data_ = static_cast<char*>(data);
  std::memset(data_, 0, size);
}

Memory::~Memory() {
  region_.reset();
  ::munmap(data_, size_);
  if (file_ >= 0) ::close(file_);
}

void Memory::register_with(fid_domain* domain, std::uint64_t key, bool virtual_addresses) {
  const std::uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  region_ = opened<fid_mr>("fi_mr_reg", [&](fid_mr** region) {
    return fi_mr_reg(domain, data_, size_, access, 0, key, 0, region, nullptr);
  });
  descriptor_ = fi_mr_desc(region_.get());
  handle_ = {virtual_addresses ? reinterpret_cast<std::uint64_t>(data_) : 0, fi_mr_key(region_.get())};
}

Endpoints::Endpoints(const Request& request, ControlConnection& line)
    : info_(ask(request)),
      out_(request.memory, request.shared),
      in_(request.memory, request.shared),
      contexts_(kContexts),
      waiting_(request.waiting) {
  open(request);
  introduce(line);
}

void Endpoints::open(const Request& request) {
  fi_info* info = info_.get();
  fabric_ = opened<fid_fabric>("fi_fabric",
                               [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
  domain_ = opened<fid_domain>(
      "fi_domain", [&](fid_domain** out) { return fi_domain(fabric_.get(), info, out, nullptr); });
  if (request.rma || request.atomic || (info->domain_attr->mr_mode & FI_MR_LOCAL)) {
    const bool virtual_addresses = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    out_.register_with(domain_.get(), kOutKey, virtual_addresses);
    in_.register_with(domain_.get(), kInKey, virtual_addresses);
  }
  fi_av_attr av{};
  av.type = FI_AV_TABLE;
  av.count = request.pairs;
  av_ = opened<fid_av>("fi_av_open",
                       [&](fid_av** out) { return fi_av_open(domain_.get(), &av, out, nullptr); });
  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_TAGGED;
  cq.wait_obj = request.waiting == Waiting::block ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
  cq.size = kContexts;
  queue_ = opened<fid_cq>("fi_cq_open",
                          [&](fid_cq** out) { return fi_cq_open(domain_.get(), &cq, out, nullptr); });
  for (unsigned pair = 0; pair < request.pairs; ++pair) {
    eps_.push_back(opened<fid_ep>(
        "fi_endpoint", [&](fid_ep** out) { return fi_endpoint(domain_.get(), info, out, nullptr); }));
    check("fi_ep_bind", fi_ep_bind(eps_.back().get(), &av_->fid, 0));
    check("fi_ep_bind", fi_ep_bind(eps_.back().get(), &queue_->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(eps_.back().get()));
  }
}

void Endpoints::introduce(ControlConnection& line) {
  for (const Owned<fid_ep>& ep : eps_) {
    std::string name(256, '\0');
    std::size_t size = name.size();
    check("fi_getname", fi_getname(&ep->fid, name.data(), &size));
    name.resize(size);
    const std::string theirs = line.exchange(name);
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    if (fi_av_insert(av_.get(), theirs.data(), 1, &peer, 0, nullptr) != 1) fail("fi_av_insert", -FI_EINVAL);
    peers_.push_back(peer);
  }
  line.put(out_.handle());
  remote_out_ = line.take<Memory::Handle>();
  line.put(in_.handle());
  remote_in_ = line.take<Memory::Handle>();
}

void Endpoints::count(const fi_cq_tagged_entry& entry) {
  if (entry.flags & FI_RECV) {
    ++received_;
  } else {
    ++sent_;
  }
}

void Endpoints::read_queue(bool wait) {
  fi_cq_tagged_entry entries[kReadMax];
  const ssize_t got = wait ? fi_cq_sread(queue_.get(), entries, kReadMax, nullptr, kBlockMilliseconds)
                           : fi_cq_read(queue_.get(), entries, kReadMax);
  for (ssize_t i = 0; i < got; ++i) count(entries[i]);
  if (got > 0 || got == -FI_EAGAIN || got == -FI_EINTR || got == 0) return;
  if (got != -FI_EAVAIL) fail("fi_cq_read", static_cast<int>(got));
  fi_cq_err_entry error{};
  fi_cq_readerr(queue_.get(), &error, 0);
  fail("an operation", -error.err);
}

void Endpoints::progress() { read_queue(false); }

void Endpoints::block_briefly() {
  const std::uint64_t before = sent_ + received_;
  read_queue(waiting_ == Waiting::block);
  if (waiting_ == Waiting::yield && sent_ + received_ == before) ::sched_yield();
}

void Endpoints::await_sent(std::uint64_t count) {
  awaited_sent_ += count;
  while (sent_ < awaited_sent_) block_briefly();
}

void Endpoints::await_received(std::uint64_t count) {
  awaited_received_ += count;
  while (received_ < awaited_received_) block_briefly();
}

void Endpoints::fail(const char* what, int error) {
  throw std::runtime_error(std::string(what) + ": " + fi_strerror(-error));
}

}  // namespace perf

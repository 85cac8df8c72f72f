#include "os/verbs_reader.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/cancellation.h"
#include "os/descriptor.h"
#include "os/memory_watch.h"
#include "os/pin_cache.h"
#include "os/verbs_device.h"
#include "os/verbs_link.h"
#include "os/verbs_queue.h"

namespace cluster::os {
namespace {

/// The length of the completion queue: twice what the reads of 256 queue pairs need. If a queue pair is
/// destroyed, some drivers leave its entries in the completion queue until they are polled.
constexpr int kCompletions = 8192;
/// A packet that is not answered is sent again after 67 ms (4.096 us * 2^14), six times.
constexpr std::uint8_t kTimeoutCode = 14;
constexpr std::uint8_t kRetries = 6;
constexpr std::uint8_t kRnrTimerCode = 12;  // nothing here waits for a receive
constexpr std::uint8_t kRnrRetries = 7;
constexpr std::uint8_t kHopLimit = 64;
constexpr int kReadsAtOnceMax = 16;

/// Soft-RoCE, the device of the kernel's rdma_rxe, has one of these vendor numbers. Hardware has others.
///
/// Soft-RoCE may report a read that has failed as done. Its queues take 1000 packets. If the answering kernel
/// drops the first packet of an answer, it continues as if it had sent that packet. The reading kernel then
/// gets the middle of an answer without its beginning. It breaks the queue pair, but completes the read with
/// success.
constexpr std::uint32_t kSoftVendors[] = {0, 0xffffff};

/// The part of the memory of this node, and of the limit of locked memory, that kept registrations may take.
constexpr std::size_t kShareOfMemory = 8;
constexpr std::size_t kShareOfLimit = 2;

PinCache::Limits limits_of_cache() {
  PinCache::Limits limits;
  limits.bytes = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                 static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / kShareOfMemory;
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
    limits.bytes = std::min<std::size_t>(limits.bytes, locked.rlim_cur / kShareOfLimit);
  return limits;
}

std::uint8_t at_once(int device_max) {
  return static_cast<std::uint8_t>(std::clamp(device_max, 1, kReadsAtOnceMax));
}

class VerbsReader final : public link::ReadDevice, private Pinner {
 public:
  VerbsReader(const VerbsLibrary& library, const VerbsPort& port, unsigned prefix_bits)
      : library_(library),
        port_(port),
        prefix_bits_(prefix_bits),
        name_(port.name()),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~VerbsReader() override;
  VerbsReader(const VerbsReader&) = delete;
  VerbsReader& operator=(const VerbsReader&) = delete;

  bool open(std::string& reason);

  const char* name() const override { return name_.c_str(); }
  bool exact() const override { return exact_; }
  std::optional<link::QueuePairEnd> create() override;
  bool reaches(const link::QueuePairEnd& peer) const override;
  bool connect(const link::QueuePairEnd& ours, const link::QueuePairEnd& peer) override;
  void destroy(std::uint32_t queue_pair) override;
  std::optional<link::DeviceMemoryKeys> add_memory(std::uint32_t queue_pair, ConstBytes memory,
                                                   link::DeviceUse use) override;
  void remove_memory(std::uint32_t handle) override;
  void tidy() override {
    const PutOffCancellation off;
    cache_->tidy();
  }
  link::DeviceMemoryUse memory_use() const override;
  std::string keeps_nothing_because() const override { return keeps_nothing_because_; }
  std::string refused_memory_because() const override { return refused_memory_because_; }
  bool read(std::uint32_t queue_pair, const link::DeviceRead& read) override;
  std::size_t poll(std::span<link::DeviceReadEnd> ends) override;
  bool works() override;
  bool exists() override;
  int descriptor() const override { return epoll_.number(); }
  bool arm() override;

 private:
  /// A queue pair. Each has a protection domain of its own, so that its peer cannot read memory that is
  /// meant for another peer. The queue pair is destroyed first, then its registrations in the cache, then the
  /// domain.
  struct Pair {
    std::uint64_t serial = 0;  ///< never used again, unlike the device's number of the queue pair
    VerbsHandle<ibv_pd> domain;
    VerbsHandle<ibv_qp> queue;
  };
  struct Memory {
    std::uint32_t queue_pair = 0;
    PinCache::Handle pin;
  };

  bool pin(Pin& pin) override;
  void unpin(Pin& pin) override;
  bool change_use(Pin& pin, PinUse use) override;

  bool watch(int descriptor);
  Pair* find(std::uint32_t queue_pair);
  void drain_channel();

  const VerbsLibrary& library_;
  VerbsPort port_;
  unsigned prefix_bits_;  ///< of the GIDs of this subnet; 0: unknown
  std::string name_;
  Descriptor epoll_;  ///< readable when a descriptor of the library is readable
  ChildrenClose children_;
  VerbsHandle<ibv_context> context_;
  VerbsHandle<ibv_comp_channel> channel_;
  VerbsHandle<ibv_cq> ends_;
  std::unordered_map<std::uint32_t, Pair> pairs_;
  std::string keeps_nothing_because_;
  std::string refused_memory_because_;
  std::optional<PinCache> cache_;
  std::unordered_map<std::uint32_t, Memory> memory_;  ///< by handle
  std::uint64_t last_serial_ = 0;
  std::uint32_t last_handle_ = 0;
  std::uint8_t answered_at_once_ = 1;  ///< reads of the peer that one queue pair answers
  std::uint8_t begun_at_once_ = 1;     ///< reads of one queue pair that are on their way
  bool exact_ = true;
  bool armed_ = false;
};

VerbsReader::~VerbsReader() {
  const PutOffCancellation off;
  for (int descriptor :
       {channel_ == nullptr ? -1 : channel_->fd, context_ == nullptr ? -1 : context_->async_fd}) {
    if (descriptor >= 0) epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  children_.reset();
  if (armed_) drain_channel();
  for (auto& [number, pair] : pairs_) pair.queue.reset();
  cache_.reset();
  pairs_.clear();
  ends_.reset();
  channel_.reset();
  context_.reset();
}

bool VerbsReader::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return set_nonblocking(descriptor) && epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool VerbsReader::open(std::string& reason) {
  const PutOffCancellation off;
  Pinner& pinner = *this;
  cache_.emplace(pinner, MemoryWatch::of_process(keeps_nothing_because_), limits_of_cache());
  const auto done = [&](bool made, const char* what) {
    if (!made) reason = name_ + ": " + failed_with(what, errno);
    return made;
  };
  context_ = open_verbs_device(library_, port_.device);
  if (!done(context_ != nullptr, "ibv_open_device")) return false;
  children_.add(context_->cmd_fd);
  children_.add(context_->async_fd);
  ibv_device_attr limits{};
  errno = library_.query_device(context_.get(), &limits);
  if (!done(errno == 0, "ibv_query_device")) return false;
  answered_at_once_ = at_once(limits.max_qp_rd_atom);
  begun_at_once_ = at_once(limits.max_qp_init_rd_atom);
  exact_ = std::ranges::find(kSoftVendors, limits.vendor_id) == std::end(kSoftVendors);
  channel_ = {library_.create_comp_channel(context_.get()), {library_.destroy_comp_channel}};
  if (!done(channel_ != nullptr, "ibv_create_comp_channel")) return false;
  children_.add(channel_->fd);
  ends_ = {
      library_.create_cq(context_.get(), std::min(kCompletions, limits.max_cqe), nullptr, channel_.get(), 0),
      {library_.destroy_cq}};
  return done(ends_ != nullptr, "ibv_create_cq") &&
         done(watch(channel_->fd) && watch(context_->async_fd), "epoll_ctl");
}

VerbsReader::Pair* VerbsReader::find(std::uint32_t queue_pair) {
  const auto found = pairs_.find(queue_pair);
  return found != pairs_.end() ? &found->second : nullptr;
}

std::optional<link::QueuePairEnd> VerbsReader::create() {
  const PutOffCancellation off;
  Pair pair;
  pair.serial = ++last_serial_;
  pair.domain = {library_.alloc_pd(context_.get()), {library_.dealloc_pd}};
  if (pair.domain == nullptr) return std::nullopt;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = ends_.get();
  wanted.recv_cq = ends_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {
      .max_send_wr = kReadsMax, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  pair.queue = {library_.create_qp(pair.domain.get(), &wanted), {library_.destroy_qp}};
  if (pair.queue == nullptr) return std::nullopt;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<std::uint8_t>(port_.port);
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  if (library_.modify_qp(pair.queue.get(), &attributes,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    return std::nullopt;
  link::QueuePairEnd end;
  std::memcpy(end.gid.data(), port_.gid.ip().data(), end.gid.size());
  end.number = pair.queue->qp_num;
  end.reads = answered_at_once_;
  for (end.mtu = 1; std::size_t{128} << (end.mtu + 1) <= port_.mtu; ++end.mtu) {
  }
  pairs_[end.number] = std::move(pair);
  return end;
}

bool VerbsReader::reaches(const link::QueuePairEnd& peer) const {
  return prefix_bits_ == 0 ||
         port_.gid.same_prefix(SocketAddress::queue_pair(peer.gid.data(), 0), prefix_bits_);
}

bool VerbsReader::connect(const link::QueuePairEnd& ours, const link::QueuePairEnd& peer) {
  Pair* const pair = find(ours.number);
  if (pair == nullptr) return false;
  const PutOffCancellation off;
  if (!can_reach_gid(port_, peer.gid)) return false;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min(ours.mtu, peer.mtu));
  attributes.dest_qp_num = peer.number;
  attributes.rq_psn = peer.sequence;
  attributes.max_dest_rd_atomic = ours.reads;
  attributes.min_rnr_timer = kRnrTimerCode;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_.gid_index);
  attributes.ah_attr.grh.hop_limit = kHopLimit;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = static_cast<std::uint8_t>(port_.port);
  if (library_.modify_qp(pair->queue.get(), &attributes,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    return false;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = kTimeoutCode;
  attributes.retry_cnt = kRetries;
  attributes.rnr_retry = kRnrRetries;
  attributes.sq_psn = ours.sequence;
  attributes.max_rd_atomic = std::min(begun_at_once_, peer.reads);
  return library_.modify_qp(pair->queue.get(), &attributes,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

void VerbsReader::destroy(std::uint32_t queue_pair) {
  const PutOffCancellation off;
  Pair* const pair = find(queue_pair);
  if (pair == nullptr) return;
  pair->queue.reset();
  std::erase_if(memory_, [=](const auto& each) { return each.second.queue_pair == queue_pair; });
  cache_->drop_owner(queue_pair);
  pairs_.erase(queue_pair);
}

std::optional<link::DeviceMemoryKeys> VerbsReader::add_memory(std::uint32_t queue_pair, ConstBytes memory,
                                                              link::DeviceUse use) {
  if (find(queue_pair) == nullptr) return std::nullopt;
  const PutOffCancellation off;
  const bool local = use == link::DeviceUse::written_here;
  const auto pin = cache_->take(queue_pair, memory, local ? PinUse::local : PinUse::exposed);
  if (!pin) return std::nullopt;
  while (++last_handle_ == 0 || memory_.contains(last_handle_)) {
  }
  memory_[last_handle_] = {queue_pair, *pin};
  const auto* const made = static_cast<const ibv_mr*>((*pin)->registration);
  return link::DeviceMemoryKeys{last_handle_, made->lkey, made->rkey};
}

void VerbsReader::remove_memory(std::uint32_t handle) {
  const auto found = memory_.find(handle);
  if (found == memory_.end()) return;
  const PutOffCancellation off;
  cache_->give_back(found->second.pin);
  memory_.erase(found);
}

/// What is kept must be writable, so that it also serves for local use. Memory that cannot be written can
/// still be exposed.
bool VerbsReader::pin(Pin& pin) {
  ibv_pd* const domain = find(static_cast<std::uint32_t>(pin.owner))->domain.get();
  const int needed = pin.use == PinUse::local ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_REMOTE_READ;
  const int wanted = pin.watched ? needed | IBV_ACCESS_LOCAL_WRITE : needed;
  auto* const begin = const_cast<std::byte*>(pin.memory.data());
  for (const int access : {wanted, needed}) {
    ibv_mr* const made = library_.reg_mr(domain, begin, pin.memory.size(), access);
    pin.registration = made;
    pin.writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
    if (made != nullptr) return true;
    refused_memory_because_ = failed_with("ibv_reg_mr", errno);
    if (wanted == needed) break;
  }
  return false;
}

void VerbsReader::unpin(Pin& pin) { library_.dereg_mr(static_cast<ibv_mr*>(pin.registration)); }

/// Not every device can do this. Soft-RoCE can since Linux 6.5.
bool VerbsReader::change_use(Pin& pin, PinUse use) {
  const int access =
      (pin.writable ? IBV_ACCESS_LOCAL_WRITE : 0) | (use == PinUse::exposed ? IBV_ACCESS_REMOTE_READ : 0);
  return library_.rereg_mr(static_cast<ibv_mr*>(pin.registration), IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                           nullptr, 0, access) == 0;
}

link::DeviceMemoryUse VerbsReader::memory_use() const {
  const PinCache::Statistics now = cache_->statistics();
  return {now.hits, now.misses, now.dropped, now.entries, now.bytes, cache_->limits().bytes};
}

bool VerbsReader::read(std::uint32_t queue_pair, const link::DeviceRead& read) {
  Pair* const pair = find(queue_pair);
  if (pair == nullptr) return false;
  ibv_sge piece{reinterpret_cast<std::uint64_t>(read.into.data()),
                static_cast<std::uint32_t>(read.into.size()), read.local_key};
  ibv_send_wr request{};
  request.wr_id = pair->serial;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = read.address;
  request.wr.rdma.rkey = read.remote_key;
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair->queue.get(), &request, &refused) == 0;
}

/// Leaves out the ends of reads whose queue pair is gone: some drivers keep them, and a later queue pair may
/// have the same number.
std::size_t VerbsReader::poll(std::span<link::DeviceReadEnd> ends) {
  if (armed_) drain_channel();
  std::array<ibv_wc, 16> completions;
  const auto wanted = static_cast<int>(std::min(ends.size(), completions.size()));
  const int count = ibv_poll_cq(ends_.get(), wanted, completions.data());
  std::size_t filled = 0;
  for (int i = 0; i < count; ++i) {
    const ibv_wc& each = completions[static_cast<std::size_t>(i)];
    const Pair* const pair = find(each.qp_num);
    if (pair == nullptr || pair->serial != each.wr_id) continue;
    ends[filled++] = {each.qp_num, each.status == IBV_WC_SUCCESS};
  }
  return filled;
}

bool VerbsReader::works() {
  const PutOffCancellation off;
  ibv_async_event event;
  bool fatal = false;
  while (library_.get_async_event(context_.get(), &event) == 0) {
    library_.ack_async_event(&event);
    const bool port_down =
        event.event_type == IBV_EVENT_PORT_ERR && event.element.port_num == static_cast<int>(port_.port);
    fatal |= port_down || event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_CQ_ERR;
  }
  return !fatal;
}

/// The removal of a soft-RoCE device waits until no process has it open. Until then the device still answers,
/// but the list of devices no longer contains it.
bool VerbsReader::exists() {
  if (!works()) return false;
  const PutOffCancellation off;
  ibv_port_attr attributes;
  return query_verbs_port(library_, context_.get(), port_.port, attributes) &&
         attributes.state == IBV_PORT_ACTIVE && has_verbs_gid(library_, context_.get(), port_) &&
         has_verbs_device(library_, port_.device);
}

/// Reads the events of the completion channel. An event that is not read keeps the descriptor readable.
void VerbsReader::drain_channel() {
  const PutOffCancellation off;
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (library_.get_cq_event(channel_.get(), &queue, &context) == 0) {
    library_.ack_cq_events(queue, 1);
    armed_ = false;
  }
}

bool VerbsReader::arm() {
  drain_channel();
  if (!armed_ && ibv_req_notify_cq(ends_.get(), 0) != 0) return false;
  return armed_ = true;
}

}  // namespace

std::unique_ptr<link::ReadDevice> open_verbs_reader(const std::string& file, const Interface& interface,
                                                    const SocketAddress& address, unsigned prefix_bits,
                                                    std::string& reason) {
  const std::optional<VerbsPort> port = find_verbs_port(file, interface, address, reason);
  if (!port) return nullptr;
  if (!port->active) {
    reason = "port " + port->name() + " is down";
    return nullptr;
  }
  const VerbsLibrary* const library = load_verbs_library(file, reason);
  if (library == nullptr) return nullptr;
  auto opened = std::make_unique<VerbsReader>(*library, *port, prefix_bits);
  if (!opened->open(reason)) return nullptr;
  return opened;
}

}  // namespace cluster::os

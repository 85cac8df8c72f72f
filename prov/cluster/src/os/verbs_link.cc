#include "os/verbs_link.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "os/cancellation.h"
#include "os/descriptor.h"
#include "os/verbs_device.h"
#include "os/verbs_queue.h"
#include "wire/opening.h"

namespace cluster::os {
namespace {

/// Every 16th send asks for a completion. The completion covers all sends before it.
constexpr std::uint32_t kSignalInterval = 16;
static_assert(VerbsQueue::kSends % kSignalInterval == 0,
              "a full queue must wait for at least one completion");
constexpr std::size_t kSendBatch = link::kBurstMax;

/// The link reads the events of the device in every 256th poll. It asks for the state of the port at most
/// once per kPortInterval.
constexpr unsigned kPollsPerLook = 256;
constexpr Duration kPortInterval = 100ms;
constexpr Duration kHandleRetry = 1s;
/// How often the link asks whether the kernel knows the hardware address of a peer.
constexpr Duration kResolveRetry = 100ms;
/// At most once per interval, the link checks whether the device still exists. It checks only when the engine
/// reads path errors, or when sends get no answer, because the check is slow.
constexpr Duration kListInterval = 500ms;
/// A device that completes no send for so long, although its queue is full, counts as failed. A device
/// completes a datagram as soon as the datagram has left.
constexpr Duration kStuckMax = 2s;
/// How often a link whose device has failed looks for the device.
constexpr Duration kReturnInterval = 1s;

class VerbsLink final : public link::Link {
 public:
  VerbsLink(const VerbsLibrary& library, VerbsPort port, const Environment& environment)
      : library_(library),
        port_(std::move(port)),
        environment_(environment),
        queue_(library, port_),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~VerbsLink() override { release(); }

  /// Opens the queue pair. On failure, returns false and sets `reason`.
  bool open(std::string& reason);
  SocketAddress address() const {
    return SocketAddress::queue_pair(port_.gid.ip().data(), queue_.pair()->qp_num);
  }

  std::shared_ptr<const std::atomic<VerbsState>> state() const { return state_; }

  const char* name() const override { return "verbs"; }
  std::size_t frame_max() const override { return port_.mtu; }
  bool limits_all_paths() const override { return false; }
  bool has_carrier() const override { return works_ && port_up_; }
  std::size_t send_burst(std::span<const link::OutFrame> frames) override;
  std::size_t receive_burst(std::span<link::InFrame> frames) override;
  std::size_t read_path_errors(std::span<link::PathError> errors) override;
  std::vector<int> descriptors() const override { return {epoll_.number()}; }
  void before_sleep() override;
  void on_move(const MoveHandler& handler) override { moved_ = handler; }

 private:
  /// The address handle for frames to one queue pair. The handle is null if the device has refused to create
  /// it, or if the kernel does not know the hardware address of the peer.
  struct Handle {
    ibv_ah* handle = nullptr;
    Time again_at{};  ///< when the link may create another handle
  };
  struct Retired {
    ibv_ah* handle;
    std::uint32_t posted;
  };

  bool watch(int descriptor);
  ibv_ah* handle_of(const link::Path& to);
  ibv_ah* make_handle(const SocketAddress& to);
  bool prepare(const link::OutFrame& frame, ibv_send_wr& request, ibv_sge& piece);
  void reap_sends();
  void note_full();
  void free_retired();
  bool take(const ibv_wc& completion, link::InFrame& frame);
  void drain_channel();
  void look_at_device();
  void look_for_device();
  void come_back();
  void read_events();
  void on_event(const ibv_async_event& event);
  void set_port_up(bool up);
  void lose_paths();
  void fail(const char* why);
  void fail_after_events(const char* why);
  void release();

  const VerbsLibrary& library_;
  VerbsPort port_;
  Environment environment_;
  VerbsQueue queue_;
  Descriptor epoll_;  ///< readable when a descriptor of the library is readable
  std::shared_ptr<std::atomic<VerbsState>> state_ =
      std::make_shared<std::atomic<VerbsState>>(VerbsState::active);
  bool works_ = false;
  bool port_up_ = true;
  bool armed_ = false;                ///< the next arrival makes the completion channel readable
  std::uint32_t posted_ = 0;          ///< number of sends so far
  std::uint32_t completed_ = 0;       ///< number of sends that the device has completed, as far as is known
  std::uint32_t posted_at_look_ = 0;  ///< number of sends at the last look_at_device()
  bool heard_ = false;                ///< something has arrived since the last look_at_device()
  unsigned polls_ = 0;
  Time port_asked_at_{};
  Time listed_at_{};          ///< when the link last looked for its device among those of this node
  Time full_since_ = kNever;  ///< since when the device has completed no send although its queue is full
  Time return_at_{};          ///< when a link whose device has failed looks for the device again
  MoveHandler moved_;
  std::unordered_map<SocketAddress, Handle, SocketAddressHash> handles_;
  std::vector<Retired> retired_;         ///< handles that sends in flight may still use
  std::vector<SocketAddress> lost_;      ///< peers whose paths have failed, for read_path_errors()
  std::vector<std::uint32_t> returned_;  ///< receive buffers to post again
  std::array<ibv_wc, VerbsQueue::kReceiveBatch> completions_;
  std::array<ibv_send_wr, kSendBatch> send_requests_;
  std::array<ibv_sge, kSendBatch> send_pieces_;
};

bool VerbsLink::watch(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  return set_nonblocking(descriptor) && epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool VerbsLink::open(std::string& reason) {
  const PutOffCancellation off;
  if (!queue_.open(reason)) return false;
  if (!watch(queue_.channel()->fd) || !watch(queue_.context()->async_fd)) {
    reason = "epoll_ctl: " + error_text(errno);
    return false;
  }
  works_ = port_up_ = true;
  armed_ = heard_ = false;
  posted_ = completed_ = posted_at_look_ = 0;
  full_since_ = kNever;
  returned_.clear();
  port_asked_at_ = listed_at_ = environment_.clock.now();
  return true;
}

ibv_ah* VerbsLink::make_handle(const SocketAddress& to) {
  ibv_ah_attr attributes{};
  std::memcpy(attributes.grh.dgid.raw, to.ip().data(), SocketAddress::kGidBytes);
  attributes.grh.sgid_index = static_cast<std::uint8_t>(port_.gid_index);
  attributes.grh.hop_limit = 64;
  attributes.is_global = 1;
  attributes.port_num = static_cast<std::uint8_t>(port_.port);
  return library_.create_ah(queue_.domain(), &attributes);
}

/// Returns the handle for the peer, or null if there is none. After two timeouts in a row, creates a new
/// handle, because the peer may have another hardware address. The kernel resolves this address while the
/// link creates the handle. So the link does that only when the kernel need not wait for the peer's answer:
/// frames to other peers would wait as well.
ibv_ah* VerbsLink::handle_of(const link::Path& to) {
  Handle& known = handles_[to.to];
  const bool doubtful = known.handle == nullptr || to.doubts > 1;
  if (!doubtful) [[likely]]
    return known.handle;
  if (environment_.clock.now() < known.again_at) return known.handle;
  std::array<std::byte, SocketAddress::kGidBytes> gid;
  std::ranges::copy(to.to.ip(), gid.begin());
  const bool ready = can_reach_gid(port_, gid);
  ibv_ah* const made = ready ? make_handle(to.to) : nullptr;
  known.again_at = environment_.clock.now() + (ready ? kHandleRetry : kResolveRetry);
  if (made == nullptr) return known.handle;
  if (known.handle != nullptr) retired_.push_back({known.handle, posted_});
  return known.handle = made;
}

/// Destroys handles that no send in flight uses.
void VerbsLink::free_retired() {
  std::erase_if(retired_, [&](const Retired& old) {
    if (static_cast<std::int32_t>(completed_ - old.posted) < 0) return false;
    library_.destroy_ah(old.handle);
    return true;
  });
}

/// Finds out which sends have completed, so that their buffers can be used again.
void VerbsLink::reap_sends() {
  std::array<ibv_wc, 8> completions;
  int count = 0;
  do {
    count = ibv_poll_cq(queue_.departures(), static_cast<int>(completions.size()), completions.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& each = completions[static_cast<std::size_t>(i)];
      if (each.status != IBV_WC_SUCCESS) return fail_after_events("a send has failed");
      completed_ = static_cast<std::uint32_t>(each.wr_id);
      full_since_ = kNever;
    }
    if (count < 0) return fail("ibv_poll_cq has failed");
  } while (count == static_cast<int>(completions.size()));
  if (!retired_.empty()) free_retired();
}

/// Called when the queue is full. If the device completes nothing any more, ends its use. Otherwise frames
/// would wait for the device as long as its path counts as working.
void VerbsLink::note_full() {
  const Time now = environment_.clock.now();
  full_since_ = std::min(full_since_, now);
  if (now - full_since_ >= kStuckMax) fail_after_events("it completes no send");
}

/// Copies the frame into the buffer of the next send. Returns false if the frame cannot leave. The link then
/// drops the frame.
bool VerbsLink::prepare(const link::OutFrame& frame, ibv_send_wr& request, ibv_sge& piece) {
  if (frame.size > port_.mtu) {
    ++environment_.counters.link_too_long;
    return false;
  }
  ibv_ah* const handle = frame.path->to.verbs() ? handle_of(*frame.path) : nullptr;
  if (handle == nullptr) {
    ++environment_.counters.link_unsendable;
    return false;
  }
  std::byte* const buffer = queue_.send_buffer(posted_);
  std::byte* end = buffer;
  for (std::size_t i = 0; i < frame.count; ++i)
    end = std::copy(frame.pieces[i].begin(), frame.pieces[i].end(), end);
  ++posted_;
  piece = queue_.piece(buffer, frame.size);
  request = {};
  request.wr_id = posted_;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  unsigned flags = 0;
  if (posted_ % kSignalInterval == 0) flags |= IBV_SEND_SIGNALED;
  if (frame.size <= queue_.inline_max()) flags |= IBV_SEND_INLINE;
  request.send_flags = flags;
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = frame.path->to.queue_pair_number();
  request.wr.ud.remote_qkey = wire::kQueueKey;
  return true;
}

std::size_t VerbsLink::send_burst(std::span<const link::OutFrame> frames) {
  const PutOffCancellation off;
  if (works_ && posted_ - completed_ + frames.size() > kSignalInterval) reap_sends();
  if (works_ && posted_ - completed_ >= VerbsQueue::kSends) [[unlikely]]
    note_full();
  if (!works_ || !port_up_) {
    environment_.counters.link_unsendable += frames.size();
    return frames.size();
  }
  std::size_t taken = 0;
  std::size_t count = 0;
  std::array<std::size_t, kSendBatch> taken_before;  // for each request: the number of frames before it
  for (; taken < frames.size() && count < kSendBatch && posted_ - completed_ < VerbsQueue::kSends; ++taken) {
    if (!prepare(frames[taken], send_requests_[count], send_pieces_[count])) continue;
    if (count != 0) send_requests_[count - 1].next = &send_requests_[count];
    taken_before[count++] = taken;
  }
  if (count == 0) return taken;
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(queue_.pair(), send_requests_.data(), &refused);
  if (error == 0) return taken;
  if (error != ENOMEM || refused == nullptr) {  // ENOMEM: the queue is full
    fail(error_text(error).c_str());
    return frames.size();
  }
  const auto sent = static_cast<std::size_t>(refused - send_requests_.data());
  posted_ -= static_cast<std::uint32_t>(count - sent);
  return taken_before[sent];
}

/// Turns a completion into a frame. Returns false if the completion contains no frame.
bool VerbsLink::take(const ibv_wc& completion, link::InFrame& frame) {
  returned_.push_back(static_cast<std::uint32_t>(completion.wr_id));
  const Bytes bytes = queue_.received(completion);
  if (bytes.empty()) {
    ++environment_.counters.link_malformed;
    return false;
  }
  frame = {};
  frame.bytes = bytes;
  frame.from.to = queue_.sender(completion);
  return true;
}

std::size_t VerbsLink::receive_burst(std::span<link::InFrame> frames) {
  if (!works_) [[unlikely]] {
    if (polls_++ % kPollsPerLook == 0) come_back();
    return 0;
  }
  if (!returned_.empty()) {
    if (!queue_.post_receives(returned_)) {
      fail(error_text(errno).c_str());
      return 0;
    }
    returned_.clear();
  }
  if (++polls_ % kPollsPerLook == 0) {
    look_at_device();
    if (!works_) return 0;
  }
  const auto wanted = static_cast<int>(std::min(frames.size(), completions_.size()));
  const int count = ibv_poll_cq(queue_.arrivals(), wanted, completions_.data());
  if (count == 0) return 0;
  if (count < 0) {
    fail("ibv_poll_cq has failed");
    return 0;
  }
  heard_ = true;
  if (armed_) drain_channel();
  std::size_t filled = 0;
  bool broken = false;
  for (const ibv_wc& completion : std::span(completions_).first(static_cast<std::size_t>(count))) {
    if (completion.status != IBV_WC_SUCCESS) {
      broken = true;
    } else if (take(completion, frames[filled])) {
      ++filled;
    }
  }
  if (broken) fail_after_events("a receive has failed");
  return filled;
}

/// Reads the event of the completion channel, if there is one. An event that is not read keeps the descriptor
/// readable.
void VerbsLink::drain_channel() {
  const PutOffCancellation off;
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (library_.get_cq_event(queue_.channel(), &queue, &context) == 0) {
    library_.ack_cq_events(queue, 1);
    armed_ = false;
  }
}

/// Makes the device report the next arrival. The device reports only what arrives after this call. The caller
/// polls again before it sleeps, so it finds earlier arrivals.
void VerbsLink::before_sleep() {
  if (!works_) {
    polls_ = 0;
    return;
  }
  const PutOffCancellation off;
  drain_channel();
  if (!armed_ && ibv_req_notify_cq(queue_.arrivals(), 0) != 0) return fail("ibv_req_notify_cq has failed");
  armed_ = true;
  look_at_device();
  if (works_ && posted_ != completed_) reap_sends();
}

/// Reads the events of the device. Also asks for the state of the port at intervals, because a device that
/// was removed does not always send an event.
void VerbsLink::look_at_device() {
  const PutOffCancellation off;
  read_events();
  if (!works_) return;
  const Time now = environment_.clock.now();
  if (now < port_asked_at_ + kPortInterval) return;
  port_asked_at_ = now;
  ibv_port_attr attributes;
  if (!query_verbs_port(library_, queue_.context(), port_.port, attributes))
    return fail("the device is gone");
  set_port_up(attributes.state == IBV_PORT_ACTIVE);
  const bool answered = std::exchange(heard_, false);
  if (std::exchange(posted_at_look_, posted_) != posted_ && !answered) look_for_device();
}

void VerbsLink::read_events() {
  ibv_async_event event;
  while (works_ && library_.get_async_event(queue_.context(), &event) == 0) {
    library_.ack_async_event(&event);
    on_event(event);
  }
}

void VerbsLink::on_event(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL: return fail("the device has failed or was removed");
    case IBV_EVENT_CQ_ERR: return fail("a completion queue has overflowed");
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR: return fail("the queue pair has failed");
    case IBV_EVENT_GID_CHANGE:
      if (!has_verbs_gid(library_, queue_.context(), port_)) fail("its GID is no longer the same");
      return;
    case IBV_EVENT_PORT_ERR:
      if (event.element.port_num == static_cast<int>(port_.port)) set_port_up(false);
      return;
    case IBV_EVENT_PORT_ACTIVE:
      if (event.element.port_num == static_cast<int>(port_.port)) set_port_up(true);
      return;
    default: return;
  }
}

void VerbsLink::set_port_up(bool up) {
  if (std::exchange(port_up_, up) == up) return;
  *state_ = up ? VerbsState::active : VerbsState::port_down;
  environment_.log.info("verbs: port %s is %s", port_.name().c_str(), up ? "up again" : "down");
  if (!up) lose_paths();
}

void VerbsLink::lose_paths() {
  for (const auto& [peer, handle] : handles_) {
    if (std::ranges::find(lost_, peer) == lost_.end()) lost_.push_back(peer);
  }
}

/// Ends the use of the device. Received frames stay valid until the next receive_burst(), because their
/// memory stays.
void VerbsLink::fail(const char* why) {
  environment_.log.warn(
      "verbs: %s is no longer used (%s); frames use the other rails (\"rdma link\" shows its state)",
      port_.name().c_str(), why);
  *state_ = VerbsState::failed;
  return_at_ = environment_.clock.now() + kReturnInterval;
  lose_paths();
  release();
}

/// Does nothing if the device now carries only shorter frames, because the peers know how long frames to this
/// side may be.
void VerbsLink::come_back() {
  const Time now = environment_.clock.now();
  if (now < return_at_) return;
  return_at_ = now + kReturnInterval;
  const PutOffCancellation off;
  const std::optional<VerbsPort> found = find_verbs_port_again(library_, port_);
  if (!found || !found->active || found->mtu < port_.mtu) return;
  port_.port = found->port;
  port_.gid_index = found->gid_index;
  port_.interface = found->interface;
  std::string reason;
  if (!open(reason)) return release();
  *state_ = VerbsState::active;
  environment_.log.info("verbs: %s is used again (queue pair %u)", port_.name().c_str(),
                        queue_.pair()->qp_num);
  if (moved_) moved_(0, address());
}

/// A failing device first completes the requests in its queues with errors. An event of the device then names
/// the cause. Therefore the log shows the event, if there is one, instead of `why`.
void VerbsLink::fail_after_events(const char* why) {
  const PutOffCancellation off;
  read_events();
  if (works_) fail(why);
}

void VerbsLink::release() {
  const PutOffCancellation off;
  works_ = false;
  for (int descriptor : {queue_.channel() == nullptr ? -1 : queue_.channel()->fd,
                         queue_.context() == nullptr ? -1 : queue_.context()->async_fd}) {
    if (descriptor >= 0) epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  queue_.stop();
  for (const auto& [peer, known] : handles_) {
    if (known.handle != nullptr) library_.destroy_ah(known.handle);
  }
  for (const Retired& old : retired_) library_.destroy_ah(old.handle);
  handles_.clear();
  retired_.clear();
  queue_.close();
}

/// The removal of a soft-RoCE device waits until no process has it open. Until then the device still answers,
/// but the list of devices no longer contains it.
void VerbsLink::look_for_device() {
  const Time now = environment_.clock.now();
  if (now < listed_at_ + kListInterval) return;
  listed_at_ = now;
  if (!has_verbs_device(library_, port_.device)) fail("the device was removed");
}

std::size_t VerbsLink::read_path_errors(std::span<link::PathError> errors) {
  if (works_) look_at_device();
  if (works_) look_for_device();
  std::size_t count = 0;
  for (; count < errors.size() && !lost_.empty(); lost_.pop_back()) {
    link::PathError& error = errors[count++];
    error = {};
    error.peer = lost_.back();
    error.status = Status::unreachable;
    error.vouched = true;
  }
  return count;
}

}  // namespace

OpenedVerbs open_verbs_link(const std::string& file, const VerbsPort& port, const Environment& environment,
                            std::string& reason) {
  const VerbsLibrary* const library = load_verbs_library(file, reason);
  if (library == nullptr) return {};
  auto opened = std::make_unique<VerbsLink>(*library, port, environment);
  if (!opened->open(reason)) {
    reason = port.name() + ": " + reason;
    return {};
  }
  const SocketAddress address = opened->address();
  std::shared_ptr<const std::atomic<VerbsState>> state = opened->state();
  return {std::move(opened), address, std::move(state)};
}

}  // namespace cluster::os

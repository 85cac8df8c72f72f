#include "os/verbs_queue.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "os/descriptor.h"
#include "wire/opening.h"

namespace cluster::os {
namespace {

/// The device writes this many bytes before each received frame. These bytes are a global routing header, or
/// end with an IPv4 header.
constexpr std::size_t kGrhBytes = 40;
/// Offset of the routing header in a receive buffer, so that frames are aligned to cache lines.
constexpr std::size_t kGrhAt = 64 - kGrhBytes;
constexpr std::size_t kFrameAt = 64;

constexpr std::uint32_t kInlineWanted = 256;

std::uint16_t folded_sum(const std::byte* words, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum +=
        std::to_integer<std::uint32_t>(words[2 * i]) << 8 | std::to_integer<std::uint32_t>(words[2 * i + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

std::string failed_with(const char* what, int error) {
  const bool locked = error == ENOMEM || error == EPERM;
  return std::string(what) + ": " + error_text(error) +
         (locked ? " (raise the limit of locked memory, \"ulimit -l\")" : "");
}

DeviceMemory::DeviceMemory(std::size_t size) : size_(size) {
  void* const made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return;
  begin_ = static_cast<std::byte*>(made);
  madvise(made, size, MADV_DONTFORK);
}

DeviceMemory::~DeviceMemory() {
  if (begin_ != nullptr) munmap(begin_, size_);
}

bool set_nonblocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

void ChildrenClose::add(int number) {
  OwnedDescriptors::add(number);
  numbers_.push_back(number);
}

void ChildrenClose::reset() {
  for (const int number : numbers_) OwnedDescriptors::remove(number);
  numbers_.clear();
}

VerbsQueue::VerbsQueue(const VerbsLibrary& library, const VerbsPort& port)
    : library_(library),
      port_(port),
      receive_size_(kFrameAt + port.mtu),
      memory_(kReceives * receive_size_ + kSends * port.mtu) {}

bool VerbsQueue::open(std::string& reason) { return create(reason) && start(reason); }

void VerbsQueue::close() {
  children_.reset();
  queue_.reset();
  departures_.reset();
  arrivals_.reset();
  channel_.reset();
  registration_.reset();
  domain_.reset();
  context_.reset();
}

bool VerbsQueue::create(std::string& reason) {
  const auto done = [&](bool made, const char* what) {
    if (!made) reason = failed_with(what, errno);
    return made;
  };
  if (!done(memory_.begin() != nullptr, "mmap")) return false;
  context_ = open_verbs_device(library_, port_.device);
  if (!done(context_ != nullptr, "ibv_open_device")) return false;
  children_.add(context_->cmd_fd);
  children_.add(context_->async_fd);
  domain_ = {library_.alloc_pd(context_.get()), {library_.dealloc_pd}};
  if (!done(domain_ != nullptr, "ibv_alloc_pd")) return false;
  registration_ = {library_.reg_mr(domain_.get(), memory_.begin(), memory_.size(), IBV_ACCESS_LOCAL_WRITE),
                   {library_.dereg_mr}};
  if (!done(registration_ != nullptr, "ibv_reg_mr")) return false;
  channel_ = {library_.create_comp_channel(context_.get()), {library_.destroy_comp_channel}};
  if (!done(channel_ != nullptr, "ibv_create_comp_channel")) return false;
  children_.add(channel_->fd);
  arrivals_ = {library_.create_cq(context_.get(), kReceives, nullptr, channel_.get(), 0),
               {library_.destroy_cq}};
  if (!done(arrivals_ != nullptr, "ibv_create_cq")) return false;
  departures_ = {library_.create_cq(context_.get(), kSends, nullptr, nullptr, 0), {library_.destroy_cq}};
  if (!done(departures_ != nullptr, "ibv_create_cq")) return false;
  ibv_qp_init_attr attributes{};
  attributes.send_cq = departures_.get();
  attributes.recv_cq = arrivals_.get();
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {.max_send_wr = kSends,
                    .max_recv_wr = kReceives,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = kInlineWanted};
  const ibv_qp_cap wanted = attributes.cap;
  queue_ = {library_.create_qp(domain_.get(), &attributes), {library_.destroy_qp}};
  if (queue_ == nullptr) {  // the device may support less inline data, and does not report how much
    attributes.cap = wanted;
    attributes.cap.max_inline_data = 0;
    queue_.reset(library_.create_qp(domain_.get(), &attributes));
  }
  inline_max_ = attributes.cap.max_inline_data;
  return done(queue_ != nullptr, "ibv_create_qp");
}

bool VerbsQueue::start(std::string& reason) {
  const auto change = [&](ibv_qp_attr attributes, int mask, const char* what) {
    const int error = library_.modify_qp(queue_.get(), &attributes, mask | IBV_QP_STATE);
    if (error != 0) reason = failed_with(what, error);
    return error == 0;
  };
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = static_cast<std::uint8_t>(port_.port);
  attributes.qkey = wire::kQueueKey;
  if (!change(attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, "ibv_modify_qp (init)"))
    return false;
  std::array<std::uint32_t, kReceives> slots;
  std::iota(slots.begin(), slots.end(), 0u);
  if (!post_receives(slots)) {
    reason = failed_with("ibv_post_recv", errno);
    return false;
  }
  attributes.qp_state = IBV_QPS_RTR;
  if (!change(attributes, 0, "ibv_modify_qp (ready to receive)")) return false;
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = 0;
  return change(attributes, IBV_QP_SQ_PSN, "ibv_modify_qp (ready to send)");
}

bool VerbsQueue::post_receives(std::span<const std::uint32_t> slots) {
  for (std::size_t begin = 0; begin < slots.size(); begin += kReceiveBatch) {
    const auto batch = slots.subspan(begin, std::min(kReceiveBatch, slots.size() - begin));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      receive_pieces_[i] = piece(receive_slot(batch[i]) + kGrhAt, kGrhBytes + port_.mtu);
      const bool last = i + 1 == batch.size();
      receive_requests_[i] = {batch[i], last ? nullptr : &receive_requests_[i + 1], &receive_pieces_[i], 1};
    }
    ibv_recv_wr* refused = nullptr;
    errno = ibv_post_recv(queue_.get(), receive_requests_.data(), &refused);
    if (errno != 0) return false;
  }
  return true;
}

Bytes VerbsQueue::received(const ibv_wc& completion) const {
  if ((completion.wc_flags & IBV_WC_GRH) == 0 || completion.byte_len <= kGrhBytes) return {};
  return {receive_slot(completion.wr_id) + kFrameAt, completion.byte_len - kGrhBytes};
}

/// A frame over IPv4 has its IPv4 header in the last 20 bytes of the routing header. The bytes before that
/// are undefined, so the checksum of the IPv4 header decides whether there is one.
SocketAddress VerbsQueue::sender(const ibv_wc& completion) const {
  constexpr std::size_t kV4At = 20;
  const std::byte* const grh = receive_slot(completion.wr_id) + kGrhAt;
  const std::byte* const v4 = grh + kV4At;
  if (v4[0] == std::byte{0x45} && folded_sum(v4, 10) == 0xffff) {
    std::array<std::byte, SocketAddress::kGidBytes> gid{};
    gid[10] = gid[11] = std::byte{0xff};
    std::memcpy(gid.data() + 12, v4 + 12, 4);
    return SocketAddress::queue_pair(gid.data(), completion.src_qp);
  }
  return SocketAddress::queue_pair(grh + 8, completion.src_qp);
}

std::byte* VerbsQueue::send_buffer(std::uint32_t number) const {
  return memory_.begin() + kReceives * receive_size_ + number % kSends * port_.mtu;
}

ibv_sge VerbsQueue::piece(std::byte* buffer, std::size_t size) const {
  return {reinterpret_cast<std::uint64_t>(buffer), static_cast<std::uint32_t>(size), registration_->lkey};
}

}  // namespace cluster::os

// A libibverbs without a device, for the tests of the verbs link (FI_CLUSTER_TEST_VERBS names this library).
// It has one RDMA device for each network interface with an IPv4 address. A queue pair is a UDP socket on
// that address, and its number is the number of the UDP port. So processes reach each other wherever they
// reach each other by UDP, such as between network namespaces.
//
// A reliable queue pair is a TCP port on that address. Threads of its own serve and perform its reads, as a
// device does. A read is checked against the registrations at the moment when its bytes are copied.
//
// It is stricter than devices: it checks every request, and tells of arrivals only if they come after the
// request for it.
//
// These variables of the environment choose faults:
//
//   FAKE_VERBS_FAIL    names of calls that fail, such as "ibv_create_qp,ibv_create_ah"
//   FAKE_VERBS_ERRNO   errno of these calls; EPERM if unset
//   FAKE_VERBS_FAULT   NAME@N: the fault happens at the Nth call that the fault names below
//   FAKE_VERBS_ONCE    if set, the fault happens only once in the process
//   FAKE_VERBS_LATE    if set, the data of a send is read and leaves only at the next call
//   FAKE_VERBS_MTU     code of the MTU, 1 to 5; 3 (1024 bytes) if unset
//   FAKE_VERBS_SOFT    if set, the device has the vendor number of soft-RoCE
//   FAKE_VERBS_PORT    down: the ports are not active
//   FAKE_VERBS_GID     index of the GID with RoCE version 2; 2 if unset
//
// Faults of FAKE_VERBS_FAULT, when an endpoint posts its Nth send:
//
//   remove         the device disappears, and says so
//   vanish         it disappears in silence
//   unlist         it carries nothing and is not listed any more, but answers, as soft-RoCE does
//   port_down      the port is down for half a second
//   move_gid       the GID gets another index, and the device says so
//   send_error     a send completes with an error
//   send_silence   no further send leaves or completes, but the device is there
//   receive_error  a receive completes with an error
//   post_error     the call fails
//
// Faults when it posts its Nth RDMA read:
//
//   read_error     the read completes with an error
//   read_half      the same, after half of the bytes
//   read_silence   the read never ends
//   read_remove    the device disappears, and says so
//   read_refused   the call fails
//   read_lie       half of the bytes come, and the queue pair breaks, but the completion says success, as
//                  with soft-RoCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

// The header replaces the names by macros.
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kInlineMax = 64;
constexpr std::size_t kGrh = 40;
constexpr std::uint32_t kVendor = 0x2c9, kSoftVendor = 0xffffff;
constexpr auto kPortDownFor = std::chrono::milliseconds(500);

struct Fault {
  std::string name;
  unsigned long at = 0;
};

Fault fault_of_environment() {
  const char* const set = std::getenv("FAKE_VERBS_FAULT");
  const std::string text = set == nullptr ? "" : set;
  const std::size_t split = text.find('@');
  if (split == std::string::npos) return {};
  return {text.substr(0, split), std::stoul(text.substr(split + 1))};
}

/// Returns true if the fault happens at the call with this number.
bool happens(const Fault& fault, unsigned long number) {
  static std::atomic<bool> happened{false};
  if (number != fault.at) return false;
  return !happened.exchange(true) || std::getenv("FAKE_VERBS_ONCE") == nullptr;
}

bool fails(const char* call) {
  const char* const set = std::getenv("FAKE_VERBS_FAIL");
  if (set == nullptr) return false;
  const std::string list = std::string(",") + set + ",";
  if (list.find(std::string(",") + call + ",") == std::string::npos) return false;
  const char* const error = std::getenv("FAKE_VERBS_ERRNO");
  errno = error == nullptr ? EPERM : std::atoi(error);
  return true;
}

int mtu_code() {
  const char* const set = std::getenv("FAKE_VERBS_MTU");
  return set == nullptr ? 3 : std::atoi(set);
}

std::size_t mtu() { return std::size_t{128} << mtu_code(); }

struct Device {
  ibv_device base{};
  in_addr address{};
  unsigned interface = 0;
};

struct CompletionQueue;
struct QueuePair;

struct Context {
  ibv_context base{};
  in_addr address{};
  unsigned interface = 0;
  std::deque<ibv_async_event> events;
  std::vector<QueuePair*> queue_pairs;
  unsigned long posted = 0;  // sends
  unsigned long reads = 0;   // RDMA reads
  bool gone = false;
  bool unlisted = false;
  bool send_error_due = false;
  bool sends_nothing = false;
  bool receive_error_due = false;
  bool post_error_due = false;
  Clock::time_point port_up_at{};
  bool down = false;  // the port, as the user was told last

  bool port_active() const {
    const char* const set = std::getenv("FAKE_VERBS_PORT");
    return (set == nullptr || std::string_view(set) != "down") && Clock::now() >= port_up_at;
  }
};

struct Channel {
  ibv_comp_channel base{};
  CompletionQueue* queue = nullptr;
  int kick = -1;  // readable when something else than a datagram is to be told
};

struct CompletionQueue {
  ibv_cq base{};
  std::deque<ibv_wc> done;
  QueuePair* receiver = nullptr;  // whose arrivals the queue gets
  unsigned unacknowledged = 0;
  bool reliable = false;  // its queue pairs are reliable, and their threads use what follows
  std::mutex mutex;
  bool armed = false;
};

class Reliable;

struct Send {
  std::uint64_t id = 0;
  bool signaled = false;
  sockaddr_in to{};
  std::vector<std::byte> copied;  // of inline data
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::uint32_t key = 0;
};

struct QueuePair {
  ibv_qp base{};
  Context* context = nullptr;
  int socket = -1;
  std::uint32_t key = 0;
  ibv_qp_cap cap{};
  std::deque<Send> sends;             // posted, not read yet
  std::deque<std::uint64_t> pending;  // ids of sends that still take a place in the queue
  std::deque<std::pair<std::uint64_t, ibv_sge>> receives;
  std::unique_ptr<Reliable> reliable;
  ~QueuePair();
};

/// With FAKE_VERBS_PINS, a registration remembers its pages, as if it had pinned them. If other pages are at
/// the addresses later, the device does what hardware would do: it reads and writes the pages that nobody
/// uses.
struct Registration {
  ibv_mr base{};
  int access = 0;
  std::vector<std::uint64_t> pages;  // their numbers in the memory of the machine; empty: not remembered
};

std::map<std::uint32_t, ibv_mr*> registrations;
std::mutex registrations_mutex;  // also held while bytes are copied: whoever forgets memory waits for that
bool unlisted = false;           // in the next list alone
std::uint32_t moved_gid = 0;     // how far the index of the GID with RoCE version 2 has moved
std::uint32_t next_key = 77;

constexpr std::uint64_t kPage = 4096;

std::vector<std::uint64_t> pages_of(std::uint64_t begin, std::uint64_t size) {
  if (std::getenv("FAKE_VERBS_PINS") == nullptr) return {};
  static const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const std::uint64_t first = begin / kPage, last = (begin + size - 1) / kPage;
  std::vector<std::uint64_t> pages(last - first + 1);
  const std::size_t bytes = pages.size() * sizeof pages[0];
  if (pread(map, pages.data(), bytes, static_cast<off_t>(first * sizeof pages[0])) !=
      static_cast<ssize_t>(bytes))
    return {};
  for (std::uint64_t& each : pages) each &= (std::uint64_t{1} << 63) | ((std::uint64_t{1} << 55) - 1);
  return pages;
}

/// Returns true if the pages at these addresses are those that were registered.
bool pinned(std::uint32_t key, std::uint64_t begin, std::uint64_t size) {
  const Registration& registration = *reinterpret_cast<const Registration*>(registrations.at(key));
  if (registration.pages.empty() || size == 0) return true;
  const std::vector<std::uint64_t> now = pages_of(begin, size);
  const std::uint64_t first = begin / kPage - reinterpret_cast<std::uint64_t>(registration.base.addr) / kPage;
  return std::equal(now.begin(), now.end(), registration.pages.begin() + static_cast<std::ptrdiff_t>(first));
}

/// Since Linux 5.12, a fork leaves pinned pages to the parent. So what the device has written is still at its
/// page.
void note_pages(std::uint32_t key, std::uint64_t begin, std::uint64_t size) {
  Registration& registration = *reinterpret_cast<Registration*>(registrations.at(key));
  if (registration.pages.empty() || size == 0) return;
  const std::vector<std::uint64_t> now = pages_of(begin, size);
  const std::uint64_t first = begin / kPage - reinterpret_cast<std::uint64_t>(registration.base.addr) / kPage;
  std::copy(now.begin(), now.end(), registration.pages.begin() + static_cast<std::ptrdiff_t>(first));
}

struct AddressHandle {
  ibv_ah base{};
  in_addr address{};
};

template <typename Whole, typename Part>
Whole* whole(Part* part) {
  return reinterpret_cast<Whole*>(part);  // each begins with the public part
}

bool registered(const ibv_sge& piece) {
  const std::lock_guard lock(registrations_mutex);
  const auto found = registrations.find(piece.lkey);
  if (found == registrations.end()) return false;
  const auto begin = reinterpret_cast<std::uint64_t>(found->second->addr);
  return piece.addr >= begin && piece.addr + piece.length <= begin + found->second->length;
}

ibv_wc completion(std::uint64_t id, ibv_wc_status status) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.status = status;
  return wc;
}

void tell(Context* context, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  context->events.push_back(event);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(context->base.async_fd, &one, sizeof one);
}

void kick(QueuePair* queue) {
  ibv_comp_channel* const channel = queue->base.recv_cq->channel;
  if (channel == nullptr) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(whole<Channel>(channel)->kick, &one, sizeof one);
}

void flush(QueuePair* queue) {
  queue->base.state = IBV_QPS_ERR;
  auto* const arrivals = whole<CompletionQueue>(queue->base.recv_cq);
  for (const auto& [id, piece] : queue->receives)
    arrivals->done.push_back(completion(id, IBV_WC_WR_FLUSH_ERR));
  queue->receives.clear();
  kick(queue);
}

std::uint32_t index_of_gid() {
  const char* const set = std::getenv("FAKE_VERBS_GID");
  return moved_gid + (set == nullptr ? 2 : static_cast<std::uint32_t>(std::atoi(set)));
}

void begin_fault(Context* context, const std::string& name) {
  if (name == "send_error") context->send_error_due = true;
  if (name == "send_silence") context->sends_nothing = true;
  if (name == "receive_error") context->receive_error_due = true;
  if (name == "post_error") context->post_error_due = true;
  if (name == "unlist") context->unlisted = unlisted = true;
  if (name == "move_gid") {
    ++moved_gid;
    tell(context, IBV_EVENT_GID_CHANGE);
  }
  if (name == "port_down") context->port_up_at = Clock::now() + kPortDownFor;
  if (name != "remove" && name != "vanish") return;
  context->gone = true;
  if (name == "vanish") return;
  for (QueuePair* const queue : context->queue_pairs) flush(queue);
  tell(context, IBV_EVENT_DEVICE_FATAL);
}

/// Tells the user about the port.
void look_at_port(Context* context) {
  const bool down = !context->port_active();
  if (std::exchange(context->down, down) == down) return;
  tell(context, down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
}

/// Performs the sends that were posted before.
void perform(QueuePair* queue) {
  Context* const context = queue->context;
  look_at_port(context);
  if (context->sends_nothing) return;
  for (; !queue->sends.empty(); queue->sends.pop_front()) {
    const Send& send = queue->sends.front();
    auto* const departures = whole<CompletionQueue>(queue->base.send_cq);
    const bool broken = queue->base.state == IBV_QPS_ERR;
    if (broken || std::exchange(context->send_error_due, false)) {
      departures->done.push_back(completion(send.id, broken ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_QP_OP_ERR));
      if (!broken) flush(queue);
      continue;
    }
    if (!context->gone && !context->unlisted && context->port_active()) {
      iovec pieces[2] = {{const_cast<std::uint32_t*>(&send.key), sizeof send.key},
                         {const_cast<std::byte*>(send.data), send.size}};
      msghdr message{};
      message.msg_name = const_cast<sockaddr_in*>(&send.to);
      message.msg_namelen = sizeof send.to;
      message.msg_iov = pieces;
      message.msg_iovlen = 2;
      sendmsg(queue->socket, &message, MSG_DONTWAIT);
    }
    if (!send.signaled || context->gone) continue;
    departures->done.push_back(completion(send.id, IBV_WC_SUCCESS));
  }
}

int post_read(QueuePair* queue, ibv_send_wr* request, ibv_send_wr** refused);

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  const Fault fault = fault_of_environment();
  const bool of_sends = !fault.name.starts_with("read_");
  auto* const queue = whole<QueuePair>(qp);
  if (qp->qp_type == IBV_QPT_RC) return post_read(queue, request, refused);
  Context* const context = queue->context;
  perform(queue);
  for (; request != nullptr; request = request->next) {
    *refused = request;
    ++context->posted;
    if (of_sends && happens(fault, context->posted)) begin_fault(context, fault.name);
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) return EINVAL;
    if (std::exchange(context->post_error_due, false)) return EIO;
    if (queue->pending.size() >= queue->cap.max_send_wr) return ENOMEM;
    if (request->opcode != IBV_WR_SEND || request->num_sge != 1) return EINVAL;
    const ibv_sge& piece = *request->sg_list;
    const bool inlined = (request->send_flags & IBV_SEND_INLINE) != 0;
    if (inlined && piece.length > queue->cap.max_inline_data) return EINVAL;
    if (piece.length > mtu() || (!inlined && !registered(piece))) return EINVAL;
    const auto* const data = reinterpret_cast<const std::byte*>(piece.addr);
    Send send;
    send.id = request->wr_id;
    send.signaled = (request->send_flags & IBV_SEND_SIGNALED) != 0;
    send.to.sin_family = AF_INET;
    send.to.sin_addr = whole<AddressHandle>(request->wr.ud.ah)->address;
    send.to.sin_port = htons(static_cast<std::uint16_t>(request->wr.ud.remote_qpn));
    send.data = data;
    send.size = piece.length;
    send.key = request->wr.ud.remote_qkey;
    queue->pending.push_back(send.id);
    queue->sends.push_back(std::move(send));
    if (!inlined) continue;
    Send& kept = queue->sends.back();
    kept.copied.assign(data, data + piece.length);
    kept.data = kept.copied.data();
  }
  if (std::getenv("FAKE_VERBS_LATE") == nullptr) perform(queue);
  *refused = nullptr;
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused) {
  auto* const queue = whole<QueuePair>(qp);
  for (; request != nullptr; request = request->next) {
    *refused = request;
    const bool room = queue->receives.size() < queue->cap.max_recv_wr;
    if (fails("ibv_post_recv")) return errno;
    if (!room || request->num_sge != 1 || !registered(*request->sg_list)) return EINVAL;
    if (qp->state == IBV_QPS_ERR) {
      whole<CompletionQueue>(qp->recv_cq)->done.push_back(completion(request->wr_id, IBV_WC_WR_FLUSH_ERR));
      continue;
    }
    queue->receives.emplace_back(request->wr_id, *request->sg_list);
  }
  *refused = nullptr;
  return 0;
}

/// Writes what a device writes in front of a datagram over IPv4: anything, and the IPv4 header.
void write_header(std::byte* at, in_addr from, in_addr to) {
  std::memset(at, 0xa5, 20);
  std::uint8_t header[20] = {0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17};
  std::memcpy(header + 12, &from, 4);
  std::memcpy(header + 16, &to, 4);
  std::uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  header[10] = static_cast<std::uint8_t>(~sum >> 8);
  header[11] = static_cast<std::uint8_t>(~sum);
  std::memcpy(at + 20, header, sizeof header);
}

/// Moves datagrams that have arrived into receive buffers.
void collect(QueuePair* queue, std::size_t limit) {
  auto* const arrivals = whole<CompletionQueue>(queue->base.recv_cq);
  Context* const context = queue->context;
  while (!context->gone && queue->base.state == IBV_QPS_RTS && arrivals->done.size() < limit) {
    std::byte data[8192];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        recvfrom(queue->socket, data, sizeof data, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) return;
    std::uint32_t key = 0;
    std::memcpy(&key, data, std::min(sizeof key, static_cast<std::size_t>(got)));
    if (queue->receives.empty() || key != queue->key || !context->port_active())
      continue;  // a device drops it, too
    const auto [id, piece] = queue->receives.front();
    queue->receives.pop_front();
    const std::size_t length = static_cast<std::size_t>(got) - sizeof key;
    if (std::exchange(context->receive_error_due, false) || length + kGrh > piece.length) {
      arrivals->done.push_back(completion(id, IBV_WC_LOC_LEN_ERR));
      flush(queue);
      return;
    }
    auto* const at = reinterpret_cast<std::byte*>(piece.addr);
    write_header(at, from.sin_addr, context->address);
    std::memcpy(at + kGrh, data + sizeof key, length);
    ibv_wc wc = completion(id, IBV_WC_SUCCESS);
    wc.opcode = IBV_WC_RECV;
    wc.byte_len = static_cast<std::uint32_t>(length + kGrh);
    wc.src_qp = ntohs(from.sin_port);
    wc.wc_flags = IBV_WC_GRH;
    arrivals->done.push_back(wc);
  }
}

int poll_reliable(CompletionQueue* queue, int count, ibv_wc* out);

int poll_cq(ibv_cq* cq, int count, ibv_wc* out) {
  auto* const queue = whole<CompletionQueue>(cq);
  if (queue->reliable) return poll_reliable(queue, count, out);
  if (queue->receiver != nullptr) {
    for (QueuePair* const each : queue->receiver->context->queue_pairs) perform(each);
    if (cq == queue->receiver->base.recv_cq) collect(queue->receiver, static_cast<std::size_t>(count));
  }
  int filled = 0;
  for (; filled < count && !queue->done.empty(); ++filled) {
    out[filled] = queue->done.front();
    queue->done.pop_front();
    if (queue->receiver == nullptr || cq != queue->receiver->base.send_cq) continue;
    std::deque<std::uint64_t>& pending = queue->receiver->pending;
    while (!pending.empty()) {
      const bool last = pending.front() == out[filled].wr_id;
      pending.pop_front();
      if (last) break;
    }
  }
  return filled;
}

/// The bytes of a registration if a queue pair of this domain may use all of them so, otherwise null. The
/// caller holds the mutex.
std::byte* usable(const ibv_pd* domain, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                  int access) {
  const auto found = registrations.find(key);
  if (found == registrations.end() || found->second->pd != domain) return nullptr;
  if ((whole<Registration>(found->second)->access & access) == 0) return nullptr;
  const auto begin = reinterpret_cast<std::uint64_t>(found->second->addr);
  if (address < begin || length > found->second->length || address - begin > found->second->length - length)
    return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

/// The threads of a reliable queue pair: one answers the reads of the peer, the other performs its own.
class Reliable {
 public:
  struct Read {
    std::uint64_t id = 0;
    ibv_sge into{};
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::string fault;
  };

  Reliable(QueuePair& queue, in_addr address)
      : queue_(queue), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr = address;
    socklen_t size = sizeof name;
    bind(listener_, reinterpret_cast<const sockaddr*>(&name), size);
    listen(listener_, 4);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &size);
    number_ = ntohs(name.sin_port);
  }
  ~Reliable() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      for (const int each : {listener_, served_, asked_})
        if (each >= 0) shutdown(each, SHUT_RDWR);
    }
    changed_.notify_all();
    if (server_.joinable()) server_.join();
    if (client_.joinable()) client_.join();
    for (const int each : {listener_, served_, asked_})
      if (each >= 0) close(each);
  }
  Reliable(const Reliable&) = delete;
  Reliable& operator=(const Reliable&) = delete;

  std::uint32_t number() const { return number_; }
  /// Ready to receive: reads of this peer are answered from now on.
  void listen_to(in_addr peer, std::uint32_t number, std::uint32_t sequence) {
    peer_.sin_family = AF_INET;
    peer_.sin_addr = peer;
    peer_.sin_port = htons(static_cast<std::uint16_t>(number));
    expected_ = {number, sequence};
    server_ = std::thread([this] { serve(); });
  }
  /// Ready to send.
  void begin(std::uint32_t sequence) {
    ours_ = {number_, sequence};
    client_ = std::thread([this] { perform_reads(); });
  }
  void post(const Read& read) {
    {
      const std::lock_guard lock(mutex_);
      reads_.push_back(read);
    }
    changed_.notify_all();
  }
  /// From now on, all reads end with errors.
  void break_off() {
    {
      const std::lock_guard lock(mutex_);
      broken_ = true;
      if (asked_ >= 0) shutdown(asked_, SHUT_RDWR);
    }
    changed_.notify_all();
  }
  bool broken() {
    const std::lock_guard lock(mutex_);
    return broken_;
  }
  std::atomic<unsigned> in_progress{0};

 private:
  struct Hello {
    std::uint32_t number = 0;
    std::uint32_t sequence = 0;
  };
  struct Question {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t key = 0;
    std::uint32_t reserved = 0;
  };

  static bool read_all(int from, void* into, std::size_t size) {
    return size == 0 || recv(from, into, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }
  static bool write_all(int to, const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size != 0) {
      const ssize_t sent = send(to, at, size, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += sent;
      size -= static_cast<std::size_t>(sent);
    }
    return true;
  }
  /// Makes the socket known to the destructor. Returns false if that has begun.
  bool keep(int& place, int number) {
    const std::lock_guard lock(mutex_);
    if (number < 0) return false;
    if (place >= 0) close(place);
    place = number;
    return !stop_;
  }

  void serve() {
    for (;;) {
      const int got = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (!keep(served_, got)) return;
      Hello hello;
      if (!read_all(got, &hello, sizeof hello)) continue;
      if (hello.number != expected_.number || hello.sequence != expected_.sequence) continue;
      while (answer(got)) {
      }
    }
  }
  bool answer(int peer) {
    Question question;
    if (!read_all(peer, &question, sizeof question)) return false;
    std::vector<std::byte> bytes;
    {
      const std::lock_guard lock(registrations_mutex);
      const std::byte* const from =
          usable(queue_.base.pd, question.key, question.address, question.length, IBV_ACCESS_REMOTE_READ);
      const bool whole_pages = from != nullptr && pinned(question.key, question.address, question.length);
      if (from != nullptr && whole_pages) bytes.assign(from, from + question.length);
      if (from != nullptr && !whole_pages) bytes.assign(question.length, std::byte{0xee});
    }
    const std::uint64_t answered = bytes.size();
    return write_all(peer, &answered, sizeof answered) && write_all(peer, bytes.data(), bytes.size());
  }

  void perform_reads() {
    for (;;) {
      Read read;
      bool flush = false;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || !reads_.empty(); });
        if (stop_) return;
        read = reads_.front();
        reads_.pop_front();
        flush = broken_;
      }
      if (read.fault == "read_silence") {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_; });
        return;
      }
      const ibv_wc_status status = flush ? IBV_WC_WR_FLUSH_ERR : perform(read);
      if (status != IBV_WC_SUCCESS) break_off();
      report(read.id, read.fault == "read_lie" && !flush ? IBV_WC_SUCCESS : status);
    }
  }
  ibv_wc_status perform(const Read& read) {
    const bool half = read.fault == "read_half" || read.fault == "read_lie";
    if (read.fault == "read_error" || !connected()) return IBV_WC_RETRY_EXC_ERR;
    const Question question{read.address, read.into.length, read.key, 0};
    std::uint64_t answered = 0;
    std::vector<std::byte> bytes(read.into.length);
    if (!write_all(asked_, &question, sizeof question) || !read_all(asked_, &answered, sizeof answered))
      return IBV_WC_RETRY_EXC_ERR;
    if (answered != bytes.size()) return IBV_WC_REM_ACCESS_ERR;
    if (!read_all(asked_, bytes.data(), bytes.size())) return IBV_WC_RETRY_EXC_ERR;
    const std::lock_guard lock(registrations_mutex);
    std::byte* const into =
        usable(queue_.base.pd, read.into.lkey, read.into.addr, read.into.length, IBV_ACCESS_LOCAL_WRITE);
    if (into == nullptr) return IBV_WC_LOC_PROT_ERR;
    if (pinned(read.into.lkey, read.into.addr, read.into.length)) {
      std::memcpy(into, bytes.data(), half ? bytes.size() / 2 : bytes.size());
      note_pages(read.into.lkey, read.into.addr, read.into.length);
    }
    return half ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  }
  bool connected() {
    if (asked_ >= 0) return true;
    if (!keep(asked_, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))) return false;
    return connect(asked_, reinterpret_cast<const sockaddr*>(&peer_), sizeof peer_) == 0 &&
           write_all(asked_, &ours_, sizeof ours_);
  }
  void report(std::uint64_t id, ibv_wc_status status) {
    auto* const ends = whole<CompletionQueue>(queue_.base.send_cq);
    const std::lock_guard lock(ends->mutex);
    ibv_wc wc = completion(id, status);
    wc.qp_num = number_;
    wc.opcode = IBV_WC_RDMA_READ;
    ends->done.push_back(wc);
    --in_progress;
    if (std::exchange(ends->armed, false)) kick(&queue_);
  }

  QueuePair& queue_;
  int listener_;
  int served_ = -1;
  int asked_ = -1;
  std::uint32_t number_ = 0;
  sockaddr_in peer_{};
  Hello expected_, ours_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Read> reads_;
  bool stop_ = false;
  bool broken_ = false;
  std::thread server_, client_;
};

QueuePair::~QueuePair() = default;

int post_read(QueuePair* queue, ibv_send_wr* request, ibv_send_wr** refused) {
  Context* const context = queue->context;
  for (; request != nullptr; request = request->next) {
    *refused = request;
    const Fault fault = fault_of_environment();
    ++context->reads;
    const bool due = fault.name.starts_with("read_") && happens(fault, context->reads);
    if (queue->base.state != IBV_QPS_RTS || (due && fault.name == "read_refused")) return EINVAL;
    if (queue->reliable->in_progress >= queue->cap.max_send_wr) return ENOMEM;
    if (request->opcode != IBV_WR_RDMA_READ || request->num_sge != 1) return EINVAL;
    if (due && fault.name == "read_remove") {
      context->gone = true;
      for (QueuePair* const each : context->queue_pairs) each->reliable->break_off();
      tell(context, IBV_EVENT_DEVICE_FATAL);
    }
    ++queue->reliable->in_progress;
    queue->reliable->post({request->wr_id, *request->sg_list, request->wr.rdma.remote_addr,
                           request->wr.rdma.rkey, due ? fault.name : ""});
  }
  *refused = nullptr;
  return 0;
}

ibv_qp* create_reliable(ibv_pd* domain, const ibv_qp_init_attr& wanted) {
  if (wanted.sq_sig_all == 0 || wanted.send_cq != wanted.recv_cq) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const queue = new QueuePair;
  queue->context = whole<Context>(domain->context);
  queue->cap = wanted.cap;
  queue->base.context = domain->context;
  queue->base.pd = domain;
  queue->base.send_cq = wanted.send_cq;
  queue->base.recv_cq = wanted.recv_cq;
  queue->base.qp_type = IBV_QPT_RC;
  queue->reliable = std::make_unique<Reliable>(*queue, queue->context->address);
  queue->base.qp_num = queue->reliable->number();
  queue->context->queue_pairs.push_back(queue);
  whole<CompletionQueue>(wanted.send_cq)->reliable = true;
  return &queue->base;
}

int modify_reliable(QueuePair* queue, const ibv_qp_attr& wanted, int mask) {
  const auto state = wanted.qp_state;
  const int needed = state == IBV_QPS_INIT  ? IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
                     : state == IBV_QPS_RTR ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                                            : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (mask != (needed | IBV_QP_STATE) || state != queue->base.state + 1) return EINVAL;
  if (state == IBV_QPS_INIT && wanted.qp_access_flags != IBV_ACCESS_REMOTE_READ) return EINVAL;
  if (state == IBV_QPS_RTR) {
    if (wanted.ah_attr.is_global == 0 || wanted.ah_attr.grh.sgid_index != index_of_gid() ||
        wanted.max_dest_rd_atomic == 0)
      return EINVAL;
    in_addr peer{};
    std::memcpy(&peer, wanted.ah_attr.grh.dgid.raw + 12, sizeof peer);
    queue->reliable->listen_to(peer, wanted.dest_qp_num, wanted.rq_psn);
  }
  if (state == IBV_QPS_RTS) {
    if (wanted.max_rd_atomic == 0) return EINVAL;
    queue->reliable->begin(wanted.sq_psn);
  }
  queue->base.state = state;
  return 0;
}

int poll_reliable(CompletionQueue* queue, int count, ibv_wc* out) {
  const std::lock_guard lock(queue->mutex);
  int filled = 0;
  for (; filled < count && !queue->done.empty(); ++filled) {
    out[filled] = queue->done.front();
    queue->done.pop_front();
  }
  return filled;
}

int notify_reliable(CompletionQueue* queue) {
  const std::lock_guard lock(queue->mutex);
  auto* const channel = whole<Channel>(queue->base.channel);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  epoll_ctl(channel->base.fd, EPOLL_CTL_MOD, channel->kick, &event);
  queue->armed = true;
  return 0;
}

/// What has arrived before does not make the channel readable: it is a completion already.
int req_notify_cq(ibv_cq* cq, int) {
  auto* const queue = whole<CompletionQueue>(cq);
  if (queue->reliable) return fails("ibv_req_notify_cq") ? errno : notify_reliable(queue);
  auto* const channel = whole<Channel>(cq->channel);
  if (queue->receiver != nullptr) collect(queue->receiver, 100000);
  if (fails("ibv_req_notify_cq")) return errno;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  epoll_ctl(channel->base.fd, EPOLL_CTL_MOD, queue->receiver->socket, &event);
  epoll_ctl(channel->base.fd, EPOLL_CTL_MOD, channel->kick, &event);
  return 0;
}

}  // namespace

extern "C" {

int ibv_fork_init() { return 0; }

ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 0;
  if (fails("ibv_get_device_list")) return nullptr;
  std::vector<ibv_device*> found;
  ifaddrs* all = nullptr;
  if (!std::exchange(unlisted, false) && getifaddrs(&all) == 0) {
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
      auto* const device = new Device;
      std::snprintf(device->base.name, sizeof device->base.name, "fake_%s", each->ifa_name);
      device->address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
      device->interface = if_nametoindex(each->ifa_name);
      found.push_back(&device->base);
    }
    freeifaddrs(all);
  }
  auto** const list = new ibv_device*[found.size() + 1];
  std::copy(found.begin(), found.end(), list);
  list[found.size()] = nullptr;
  if (count != nullptr) *count = static_cast<int>(found.size());
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  for (ibv_device** each = list; *each != nullptr; ++each) delete whole<Device>(*each);
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  if (fails("ibv_open_device")) return nullptr;
  auto* const context = new Context;
  context->address = whole<Device>(device)->address;
  context->interface = whole<Device>(device)->interface;
  context->base.ops.post_send = post_send;
  context->base.ops.post_recv = post_recv;
  context->base.ops.poll_cq = poll_cq;
  context->base.ops.req_notify_cq = req_notify_cq;
  context->base.cmd_fd = eventfd(0, EFD_CLOEXEC);
  context->base.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  context->down = !context->port_active();
  return &context->base;
}

int ibv_close_device(ibv_context* context) {
  close(context->cmd_fd);
  close(context->async_fd);
  delete whole<Context>(context);
  return 0;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  if (fails("ibv_query_device")) return errno;
  if (whole<Context>(context)->gone) return ENODEV;
  *out = {};
  out->vendor_id = std::getenv("FAKE_VERBS_SOFT") == nullptr ? kVendor : kSoftVendor;
  out->max_cqe = 1000;
  out->max_qp_rd_atom = 16;
  out->max_qp_init_rd_atom = 4;
  return 0;
}

int ibv_query_port(ibv_context* context, std::uint8_t, _compat_ibv_port_attr* attributes) {
  auto* const out = reinterpret_cast<ibv_port_attr*>(attributes);
  const auto* const device = whole<Context>(context);
  if (fails("ibv_query_port")) return errno;
  if (device->gone) return ENODEV;
  out->state = device->port_active() ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out->max_mtu = IBV_MTU_4096;
  out->active_mtu = static_cast<ibv_mtu>(mtu_code());
  out->active_speed = 32;
  out->active_width = 2;
  out->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* out, std::size_t, std::uint32_t,
                             std::size_t) {
  if (fails("_ibv_query_gid_table")) return -EPERM;
  const auto* const mine = whole<Context>(context);
  for (std::uint32_t i = 0; i < 3; ++i) {
    out[i] = {};
    out[i].gid_index = i == 2 ? index_of_gid() : i;
    out[i].port_num = 1;
    out[i].gid_type = i == 1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    out[i].ndev_ifindex = mine->interface;
    out[i].gid.raw[0] = i == 0 ? 0xfe : 0;
    out[i].gid.raw[1] = i == 0 ? 0x80 : 0;
    if (i != 0) out[i].gid.raw[10] = out[i].gid.raw[11] = 0xff;
    std::memcpy(out[i].gid.raw + 12, &mine->address, 4);
  }
  return 3;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (fails("ibv_alloc_pd")) return nullptr;
  auto* const domain = new ibv_pd{};
  domain->context = context;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* begin, std::size_t size, int access) {
  if (fails("ibv_reg_mr")) return nullptr;
  const std::uint64_t from = reinterpret_cast<std::uint64_t>(begin) / kPage * kPage;
  const std::uint64_t to = (reinterpret_cast<std::uint64_t>(begin) + size + kPage - 1) / kPage * kPage;
  const bool written = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  if (size != 0 &&
      madvise(reinterpret_cast<void*>(from), to - from, written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) !=
          0 &&
      errno != EINVAL) {
    errno = EFAULT;
    return nullptr;
  }
  const std::lock_guard lock(registrations_mutex);
  auto* const made = new Registration;
  made->base.context = domain->context;
  made->base.pd = domain;
  made->base.addr = begin;
  made->base.length = size;
  made->base.lkey = next_key++;
  made->base.rkey = made->base.lkey;
  made->access = access;
  made->pages = pages_of(reinterpret_cast<std::uint64_t>(begin), size);
  registrations[made->base.lkey] = &made->base;
  return &made->base;
}

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd*, void*, std::size_t, int access) {
  if (fails("ibv_rereg_mr")) return IBV_REREG_MR_ERR_CMD;
  if (flags != IBV_REREG_MR_CHANGE_ACCESS) return IBV_REREG_MR_ERR_INPUT;
  const std::lock_guard lock(registrations_mutex);
  whole<Registration>(mr)->access = access;
  return 0;
}

int ibv_dereg_mr(ibv_mr* mr) {
  const std::lock_guard lock(registrations_mutex);
  registrations.erase(mr->lkey);
  delete whole<Registration>(mr);
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (fails("ibv_create_comp_channel")) return nullptr;
  auto* const channel = new Channel;
  channel->base.context = context;
  channel->base.fd = epoll_create1(EPOLL_CLOEXEC);
  channel->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = 0;
  epoll_ctl(channel->base.fd, EPOLL_CTL_ADD, channel->kick, &event);
  return &channel->base;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  close(whole<Channel>(channel)->kick);
  delete whole<Channel>(channel);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int size, void* user, ibv_comp_channel* channel, int) {
  if (fails("ibv_create_cq")) return nullptr;
  auto* const queue = new CompletionQueue;
  queue->base.context = context;
  queue->base.channel = channel;
  queue->base.cq_context = user;
  queue->base.cqe = size;
  if (channel != nullptr) whole<Channel>(channel)->queue = queue;
  return &queue->base;
}

int ibv_destroy_cq(ibv_cq* cq) {
  if (whole<CompletionQueue>(cq)->unacknowledged != 0) std::abort();  // the real one waits for ever
  delete whole<CompletionQueue>(cq);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  if (fails("ibv_create_qp")) return nullptr;
  if (wanted->qp_type == IBV_QPT_RC) return create_reliable(domain, *wanted);
  if (wanted->cap.max_inline_data > kInlineMax || wanted->qp_type != IBV_QPT_UD) {
    errno = EINVAL;
    return nullptr;
  }
  wanted->cap.max_inline_data = kInlineMax;  // as devices do, it grants more than was asked for
  auto* const queue = new QueuePair;
  queue->context = whole<Context>(domain->context);
  queue->cap = wanted->cap;
  queue->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int buffer = 4 << 20;
  setsockopt(queue->socket, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);

  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr = queue->context->address;
  socklen_t size = sizeof name;
  bind(queue->socket, reinterpret_cast<const sockaddr*>(&name), size);
  getsockname(queue->socket, reinterpret_cast<sockaddr*>(&name), &size);
  queue->base.context = domain->context;
  queue->base.pd = domain;
  queue->base.send_cq = wanted->send_cq;
  queue->base.recv_cq = wanted->recv_cq;
  queue->base.qp_num = ntohs(name.sin_port);
  queue->base.qp_type = IBV_QPT_UD;
  queue->context->queue_pairs.push_back(queue);
  whole<CompletionQueue>(wanted->recv_cq)->receiver = queue;
  whole<CompletionQueue>(wanted->send_cq)->receiver = queue;
  if (wanted->recv_cq->channel != nullptr) {
    epoll_event event{};
    event.events = 0;
    epoll_ctl(wanted->recv_cq->channel->fd, EPOLL_CTL_ADD, queue->socket, &event);
  }
  return &queue->base;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (fails("ibv_modify_qp")) return errno;
  if (qp->qp_type == IBV_QPT_RC) return modify_reliable(whole<QueuePair>(qp), *attributes, mask);
  const int next = attributes->qp_state;
  const bool in_order = (qp->state == IBV_QPS_RESET && next == IBV_QPS_INIT) ||
                        (qp->state == IBV_QPS_INIT && next == IBV_QPS_RTR) ||
                        (qp->state == IBV_QPS_RTR && next == IBV_QPS_RTS);
  const int needed = next == IBV_QPS_INIT  ? IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY
                     : next == IBV_QPS_RTS ? IBV_QP_SQ_PSN
                                           : 0;
  if (!in_order || mask != (needed | IBV_QP_STATE)) return EINVAL;
  qp->state = attributes->qp_state;
  if (next == IBV_QPS_INIT) whole<QueuePair>(qp)->key = attributes->qkey;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  auto* const queue = whole<QueuePair>(qp);
  if (queue->reliable != nullptr) {
    std::erase(queue->context->queue_pairs, queue);
    delete queue;
    return 0;
  }
  perform(queue);
  std::erase(queue->context->queue_pairs, queue);
  whole<CompletionQueue>(qp->recv_cq)->receiver = nullptr;
  whole<CompletionQueue>(qp->send_cq)->receiver = nullptr;
  close(queue->socket);
  delete queue;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
  if (fails("ibv_create_ah")) return nullptr;
  if (attributes->is_global == 0 || attributes->grh.sgid_index != index_of_gid()) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const handle = new AddressHandle;
  handle->base.context = domain->context;
  handle->base.pd = domain;
  std::memcpy(&handle->address, attributes->grh.dgid.raw + 12, 4);
  return &handle->base;
}

int ibv_destroy_ah(ibv_ah* handle) {
  delete whole<AddressHandle>(handle);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  const bool waits = (fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
  epoll_event event{};
  if (epoll_wait(channel->fd, &event, 1, waits ? -1 : 0) != 1) {
    errno = EAGAIN;
    return -1;
  }
  std::uint64_t kicks = 0;
  [[maybe_unused]] const auto got = read(whole<Channel>(channel)->kick, &kicks, sizeof kicks);
  CompletionQueue* const queue = whole<Channel>(channel)->queue;
  // One event in all: the other source is not armed any more.
  epoll_event none{};
  if (queue->receiver != nullptr) epoll_ctl(channel->fd, EPOLL_CTL_MOD, queue->receiver->socket, &none);
  epoll_ctl(channel->fd, EPOLL_CTL_MOD, whole<Channel>(channel)->kick, &none);
  ++queue->unacknowledged;
  *cq = &queue->base;
  *context = queue->base.cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) { whole<CompletionQueue>(cq)->unacknowledged -= count; }

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  std::uint64_t one = 0;
  look_at_port(whole<Context>(context));
  if (read(context->async_fd, &one, sizeof one) < 0) return -1;
  *event = whole<Context>(context)->events.front();
  whole<Context>(context)->events.pop_front();
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

}  // extern "C"

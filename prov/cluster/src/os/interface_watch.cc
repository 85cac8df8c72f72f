#include "os/interface_watch.h"

#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "os/detached_thread.h"
#include "os/packet_headers.h"
#include "os/system_clock.h"

namespace cluster::os {
namespace {

// The watch sends each announcement several times, because a switch port that has just come up may drop the
// first announcements.
constexpr unsigned kAnnouncements = 5;
constexpr Duration kAnnounceAgain = 100ms;  // doubles with each announcement
/// The shortest time between two reads of the interfaces. On a host with many containers, interfaces change
/// all the time.
constexpr Duration kLookInterval = 10ms;
constexpr std::uint16_t kDiscardPort = 9;
constexpr unsigned kKnockPrefixMax = 29;  // a network with a longer prefix has too few hosts to knock at

std::string text_of(const std::array<std::byte, 6>& mac) {
  std::array<char, 18> text;
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(mac[i]); };
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", at(0), at(1), at(2), at(3), at(4),
                at(5));
  return text.data();
}

auto find_host(const std::vector<SocketAddress>& addresses, const SocketAddress& host) {
  return std::find_if(addresses.begin(), addresses.end(),
                      [&](const SocketAddress& each) { return each.same_host(host); });
}

template <typename Uses>
auto use_of(Uses& uses, const SocketAddress& address) {
  return std::find_if(uses.begin(), uses.end(),
                      [&](const auto& use) { return use.address.same_host(address); });
}

struct Known {
  std::uint64_t name_space;
  // A forked child does not use its parent's watch, because the child has no thread that reads the socket.
  pid_t process;
  std::weak_ptr<InterfaceWatch> watch;
};

}  // namespace

std::shared_ptr<InterfaceWatch> InterfaceWatch::of_this_namespace(Log& log) {
  static std::mutex& mutex = *new std::mutex;
  static std::vector<Known>& all = *new std::vector<Known>;
  const std::lock_guard guard(mutex);
  std::erase_if(all, [](const Known& each) { return each.watch.expired() || each.process != getpid(); });
  const std::uint64_t here = network_namespace();
  for (const Known& each : all) {
    std::shared_ptr<InterfaceWatch> watch = each.watch.lock();
    if (each.name_space == here && watch != nullptr) return watch;
  }
  auto watch = std::make_shared<InterfaceWatch>(log);
  if (!watch->open()) return nullptr;
  all.push_back({here, getpid(), watch});
  return watch;
}

/// Opens all sockets on the caller's thread and not on the progress thread, which may be in another network
/// namespace.
bool InterfaceWatch::open() {
  if (!kernel_) return false;
  // From now on, the kernel reports each change as an event.
  interfaces_ = kernel_.look().value_or(std::vector<Interface>());
  frames_ = Descriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!frames_) datagrams_ = Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int error = 0;
  client_ = start_progress_client([this] { return run(); }, error);
  return client_ != nullptr;
}

InterfaceWatch::~InterfaceWatch() {
  client_.reset();  // until then, the progress thread uses the other members
  close_aside(std::move(frames_));
}

/// The caller must hold the lock.
const Interface* InterfaceWatch::find(const SocketAddress& address, int index) const {
  const Interface* found = nullptr;
  for (const Interface& each : interfaces_) {
    if (!has_host(each.addresses, address)) continue;
    if (each.index == index) return &each;
    if (found == nullptr) found = &each;
  }
  return found;
}

std::optional<Interface> InterfaceWatch::with_address(const SocketAddress& address, int index) const {
  const std::lock_guard guard(mutex_);
  const Interface* const found = find(address, index);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::optional<Interface> InterfaceWatch::with_index(int index) const {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find(interfaces_, index, &Interface::index);
  return found != interfaces_.end() ? std::optional(*found) : std::nullopt;
}

std::vector<SocketAddress> InterfaceWatch::addresses() const {
  const std::lock_guard guard(mutex_);
  std::vector<SocketAddress> all;
  for (const Interface& each : interfaces_)
    all.insert(all.end(), each.addresses.begin(), each.addresses.end());
  return all;
}

void InterfaceWatch::add_user(const SocketAddress& address, int index, Signal& lost) {
  const std::lock_guard guard(mutex_);
  const auto known = use_of(uses_, address);
  if (known != uses_.end()) return known->users.push_back(&lost);
  const Interface* const at = find(address, index);
  uses_.push_back({.address = address, .users = {&lost}, .at = at != nullptr ? *at : Interface{}});
}

void InterfaceWatch::remove_user(const SocketAddress& address, Signal& lost) {
  if (process_ != getpid()) return;  // in a forked child, the mutex may be locked forever
  const std::lock_guard guard(mutex_);
  const auto known = use_of(uses_, address);
  if (known == uses_.end()) return;
  std::erase(known->users, &lost);
  if (known->users.empty()) uses_.erase(known);
}

NextWake InterfaceWatch::run() {
  const Time now = SystemClock().now();
  bool changed = false;
  if (now >= next_look_ && kernel_.any()) {
    next_look_ = now + kLookInterval;
    changed = look();
  }
  const bool rests = now < next_look_;
  Time next = rests ? next_look_ : kNever;
  std::vector<Use> due;
  std::vector<std::string> news;
  {
    const std::lock_guard guard(mutex_);
    for (Use& use : uses_) {
      if (changed) news.push_back(review(use, now));
      if (use.announce_at <= now && use.at.running) {
        due.push_back(use);
        ++use.announced;
        use.announce_at =
            use.announced < kAnnouncements ? now + kAnnounceAgain * (1 << (use.announced - 1)) : kNever;
      }
      if (use.at.running) next = std::min(next, use.announce_at);
    }
  }
  for (const Use& use : due) announce(use);
  for (const std::string& line : news) {
    if (!line.empty()) log_.warn("%s", line.c_str());
  }
  return {next == kNever ? NextWake::kUntilReadable : next - now, rests ? -1 : kernel_.descriptor()};
}

/// Reads the interfaces. Returns true if any of them has changed. If an address has no interface now, raises
/// the signals of its users, which then look for another address. Counts the change after that, because a
/// link that sees a new count lowers its signal.
bool InterfaceWatch::look() {
  std::optional<std::vector<Interface>> now = kernel_.look();
  const std::lock_guard guard(mutex_);
  if (!now || *now == interfaces_) return false;
  interfaces_ = std::move(*now);
  for (const Use& use : uses_) {
    if (find(use.address, use.at.index) != nullptr) continue;
    for (Signal* const user : use.users) user->raise();
  }
  changes_.fetch_add(1, std::memory_order_release);
  return true;
}

/// If the address has another interface or hardware address than before, schedules announcements and returns
/// a line for the log, unless the address had no interface before. If no interface has the address, `use.at`
/// keeps the interface that had the address last, because the address may soon appear on another interface.
/// The caller must hold the lock.
std::string InterfaceWatch::review(Use& use, Time now) {
  const Interface* const found = find(use.address, use.at.index);
  if (found == nullptr) return {};
  const Interface before = std::exchange(use.at, *found);
  if (found->mac == before.mac && found->index == before.index) return {};
  use.announced = 0;
  use.announce_at = now;
  if (before.index == 0) return {};
  return use.address.ip_text() + " now has the hardware address " + text_of(found->mac) + " on " +
         found->name + " (before: " + text_of(before.mac) + " on " + before.name +
         "): frames now carry the new hardware address";
}

/// The caller must not hold the lock.
void InterfaceWatch::announce(const Use& use) const {
  if (!use.at.has_ethernet || use.at.loopback) return;
  if (!frames_) return knock(use);
  send(neighbour_announcement({use.at.mac, use.address}), use.at.index);
}

void InterfaceWatch::send(ConstBytes frame, int interface) const {
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = interface;
  sendto(frames_.number(), frame.data(), frame.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&to),
         sizeof to);
}

/// Announces the address without writing Ethernet frames: sends an empty datagram to another address of the
/// network, each time to a different one. When the hardware address of the interface changed, the kernel
/// forgot the hardware addresses of all other hosts. Therefore, before the kernel can send the datagram, it
/// asks all hosts for the receiver's hardware address. This question contains the new hardware address of
/// this node. Does nothing for IPv6, and in a network of few addresses.
void InterfaceWatch::knock(const Use& use) const {
  const auto& addresses = use.at.addresses;
  const auto own = find_host(addresses, use.address);
  if (own == addresses.end() || use.address.family() != SocketAddress::Family::v4 || !datagrams_) return;
  const unsigned bits = use.at.prefix_bits.at(static_cast<std::size_t>(own - addresses.begin()));
  if (bits > kKnockPrefixMax) return;
  std::uint32_t ip = 0;
  std::memcpy(&ip, use.address.ip().data(), sizeof ip);
  const std::uint32_t host_bits = static_cast<std::uint32_t>((std::uint64_t{1} << (32 - bits)) - 1);
  std::uint32_t neighbour = (ntohl(ip) & ~host_bits) + use.announced + 1;
  if (neighbour >= ntohl(ip)) ++neighbour;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kDiscardPort);
  to.sin_addr.s_addr = htonl(neighbour);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = IPPROTO_IP;
  header->cmsg_type = IP_PKTINFO;
  header->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo from{};
  from.ipi_ifindex = use.at.index;
  from.ipi_spec_dst.s_addr = ip;
  std::memcpy(CMSG_DATA(header), &from, sizeof from);
  sendmsg(datagrams_.number(), &message, MSG_DONTWAIT);
}

WatchedInterface::WatchedInterface(const SocketAddress& address, int index, Log& log)
    : name_(address),
      address_(address),
      lost_(Signal::open()),
      watch_(InterfaceWatch::of_this_namespace(log)) {
  if (lost_ == nullptr) watch_ = nullptr;
  if (watch_ == nullptr) return;
  seen_ = watch_->changes() - 1;  // the caller may have missed a change since it read its interface
  now_.index = index;
  watch_->add_user(address_, index, *lost_);
}

WatchedInterface::~WatchedInterface() {
  if (watch_ != nullptr) watch_->remove_user(address_, *lost_);
}

std::optional<SocketAddress> WatchedInterface::replacement() const {
  const auto here = [&](const SocketAddress& address) {
    return watch_->with_address(address, now_.index).has_value();
  };
  if (!address_.same_host(name_) && here(name_)) return name_;
  if (here(address_)) return std::nullopt;
  const std::optional<Interface> interface = watch_->with_index(now_.index);
  if (!interface) return std::nullopt;
  const auto alike = [&](const SocketAddress& address) {
    return address.family() == address_.family() && address.link_local() == address_.link_local();
  };
  const auto found = std::ranges::find_if(interface->addresses, alike);
  return found != interface->addresses.end() ? std::optional(found->with_port(address_.port()))
                                             : std::nullopt;
}

void WatchedInterface::move_to(const SocketAddress& address) {
  watch_->remove_user(address_, *lost_);
  address_ = address;
  watch_->add_user(address_, now_.index, *lost_);
  renew();
}

std::optional<Interface> WatchedInterface::renew() {
  lost_->lower();
  seen_ = watch_->changes();
  std::optional<Interface> now = watch_->with_address(address_, now_.index);
  if (now) now_ = *now;
  carrier_ = !now || now->running;
  return now;
}

void WatchedInterface::ask_for(const link::Path& path) {
  if (watch_ == nullptr || !std::has_single_bit(path.doubts) || !now_.has_ethernet) return;
  if (path.doubts == asked_.doubts && path.to == asked_.to) return;
  asked_ = path;
  if (!has_host(now_.addresses, path.to) && in_network(path.to))
    watch_->send(neighbour_question({now_.mac, address_}, path.to), now_.index);
}

bool WatchedInterface::in_network(const SocketAddress& address) const {
  const auto own = find_host(now_.addresses, address_);
  if (own == now_.addresses.end()) return false;
  const unsigned bits = now_.prefix_bits.at(static_cast<std::size_t>(own - now_.addresses.begin()));
  return same_network(address, address_, bits);
}

}  // namespace cluster::os

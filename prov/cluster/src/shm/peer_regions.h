// Accesses the regions of one peer on this node without the help of the peer's library. This is the
// initiator's side of the protocol in shm/region_layout.h.
//
// If a region is in shared memory, this side maps the region after some uses, and then copies by loads and
// stores (MappedRegions). For all other regions a system call copies the data. The system call takes one or
// two microseconds. If the peer polls, a segment in a ring takes only a fraction of that time. So small
// writes use the ring as long as the peer polls (shm/local_memory.h).
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "base/log.h"
#include "os/local_socket.h"
#include "os/peer_mapping.h"
#include "os/process_memory.h"
#include "os/shared_memory.h"
#include "shm/greeting.h"
#include "shm/local_memory.h"
#include "shm/region_layout.h"

namespace cluster::shm {

/// The regions of one peer that this process has mapped (os/peer_mapping.h). They are indexed by the number
/// of their entry in the peer's table. The search for the file of a region takes some hundred microseconds,
/// as long as fifty copies by the kernel. So this side searches only once per region, at use number
/// kUsesBefore.
///
/// A mapping belongs to one registration, which is identified by the generation of the entry. A region that
/// is closed and registered again may be at another place. A mapping keeps the memory of its region
/// allocated, even if the peer has closed the region and freed the memory. This side drops the mapping of a
/// closed region when this side finds that the entry belongs to another region, or maps the next region.
class MappedRegions {
 public:
  static constexpr std::uint32_t kUsesBefore = 16;
  static constexpr std::size_t kMappingsMax = 256;  ///< Linux allows a process about 65000 mappings in all

  /// Identifies the process of the peer.
  struct Process {
    int number = 0;
    os::GuardMark guard{};
  };

  void set_process(const Process& process) { process_ = process; }
  /// Returns the address, in this process, of a part of the entry's region. Returns null if the entry is not
  /// the one that was used last, or if its region is not mapped. Also returns null if the part is outside of
  /// the region, or if not all pages of the region are populated. The peer writes the entry, and may be
  /// hostile. The initiator must have marked the entry as in use.
  std::byte* at_last(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset,
                     std::size_t length) const {
    const bool last = number == last_number_ && entries.at(number).generation == last_->generation;
    return last ? last_->mapping.ready_at(offset, length) : nullptr;
  }
  /// Like at_last(), but for any entry and any mapped part. Each call counts as a use, and may map the
  /// region, or drop mappings of closed regions.
  std::byte* at(const RegionEntries& entries, std::uint32_t number, std::uint64_t offset, std::size_t length);
  /// Returns the part of the last region around these bytes that is ready for access. at() must have returned
  /// a pointer to the bytes. Sets `offset` to the position of the part in the region.
  Bytes ready_around(std::uint64_t& offset, std::size_t length) const {
    return last_->mapping.populated_around(offset, length);
  }
  /// Returns the number of the key's entry if its region is probably mapped, else kEntries. The entry need
  /// not be marked as in use.
  std::uint32_t find(const RegionEntries& entries, std::uint64_t key) const {
    if (mappings_ == 0) return RegionEntries::kEntries;
    const bool last = last_->key == key && last_->mapping;
    return last ? last_number_ : find_other(entries, key);
  }

 private:
  struct View {
    std::uint64_t generation = 0;
    std::uint64_t key = 0;
    std::uint32_t uses = 0;  ///< uses before this side searched for the region's file
    os::PeerMapping mapping{};
  };

  std::uint32_t find_other(const RegionEntries& entries, std::uint64_t key) const;
  void select(const RegionEntries& entries, std::uint32_t number);
  std::byte* use(const RegionEntries& entries, std::uint64_t offset, std::size_t length);
  void forget_closed(const RegionEntries& entries);

  Process process_;
  std::unordered_map<std::uint32_t, View> views_;  ///< its nodes never move, so last_ stays valid
  std::uint32_t last_number_ = ~std::uint32_t{0};
  View* last_ = nullptr;  ///< the view of entry last_number_
  std::size_t mappings_ = 0;
};

class PeerRegions final : public LocalMemory {
 public:
  /// `socket`: the connection on which the caller has begun `greeting`. The hello of `greeting` carries the
  /// descriptor of `page`. The log must outlive this object.
  PeerRegions(const SocketAddress& peer, os::LocalSocket socket, HelloSender greeting, os::SharedMemory page,
              Log& log)
      : peer_(peer),
        socket_(std::move(socket)),
        greeting_(std::move(greeting)),
        memory_(std::move(page)),
        log_(log) {}

  PeerRegions(const PeerRegions&) = delete;
  PeerRegions& operator=(const PeerRegions&) = delete;
  ~PeerRegions() override { leave(); }

  Outcome put(const carrier::RemoteRange& to, const Gather& source, carrier::AccessTerms terms,
              carrier::AccessTicket ticket) override;
  Outcome get(const carrier::RemoteRange& from, const Scatter& target, carrier::AccessTerms terms,
              carrier::AccessTicket ticket) override;
  Outcome write(std::uint64_t key, std::uint64_t address, const Gather& source) override;
  Outcome judge_write(std::uint64_t key, std::uint64_t address, std::size_t length) override;
  Outcome store(std::uint64_t key, std::uint64_t address, ConstBytes source) override;
  Outcome load(std::uint64_t key, std::uint64_t address, Bytes target) override;
  Outcome read(std::uint64_t key, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
               std::size_t length) override;

  /// Waits for the answers to the greeting, but for each of them at most for `limit`. A short wait is usually
  /// enough, because the peer's progress thread answers at once if it can. ready() receives an answer that
  /// arrives later.
  void wait_for_welcome(std::chrono::milliseconds limit);

 private:
  /// One in this many posted writes counts as a use. An exact count would cost too many instructions.
  static constexpr std::uint32_t kJudgedPerUse = 16;

  enum class State : std::uint8_t { waiting, ready, ended };

  /// The bits of an entry's state that matter for one kind of access.
  struct Kind {
    std::uint32_t allowed;
    std::uint32_t served;
  };
  static constexpr Kind kWrite{RegionEntry::kWritable, RegionEntry::kWritesServed};
  static constexpr Kind kRead{RegionEntry::kReadable, RegionEntry::kReadsServed};

  UsePage& page() { return *reinterpret_cast<UsePage*>(memory_.bytes().data()); }
  bool ready();
  void take_welcome();
  void give_up(const char* reason);
  /// Tells the peer that this side will use nothing more, so that the peer no longer checks this side's page.
  void leave();
  /// Tests whether the kernel allows this process to copy to and from the peer's memory. Returns an empty
  /// text if so. Otherwise returns the reason, as a text for the log.
  std::string try_copies() const;
  template <typename Copy, typename Through>
  Outcome access(std::uint64_t key, std::uint64_t address, std::size_t length, const Kind& kind, Copy&& copy,
                 Through&& through_kernel);
  Outcome judge_unlisted(std::uint64_t key);
  Outcome judge(std::uint32_t number, std::uint64_t key, std::uint64_t address, std::size_t length,
                const Kind& kind);
  template <typename Copy, typename Through>
  Outcome access_piece(std::uint64_t key, std::uint64_t address, std::size_t length, std::size_t part,
                       const Kind& kind, Copy&& copy, Through&& through_kernel);
  template <typename Copy>
  Outcome access_mapped(std::uint64_t key, std::uint64_t address, std::size_t length, const Kind& kind,
                        Copy&& copy);
  std::byte* mapped(std::uint32_t number, std::uint64_t address, std::size_t length) {
    const std::uint64_t offset = address - entries_.at(number).start;
    std::byte* const here = mapped_.at_last(entries_, number, offset, length);
    return here != nullptr ? here : mapped_elsewhere(number, address, offset, length);
  }
  std::byte* mapped_elsewhere(std::uint32_t number, std::uint64_t address, std::uint64_t offset,
                              std::size_t length);

  const SocketAddress peer_;
  os::LocalSocket socket_;  ///< the connection, until the welcome has arrived
  HelloSender greeting_;
  os::SharedMemory memory_;  ///< contains the use page of this side
  Log& log_;
  State state_ = State::waiting;
  int process_ = 0;
  RegionWelcome welcome_{};
  os::SharedMemory table_;
  RegionEntries entries_;
  MappedRegions mapped_;
  std::uint32_t judged_ = 0;
};

class PeerRegionConnector final : public RegionConnector {
 public:
  /// The progress thread of a peer answers within some hundred microseconds. On a busy machine the answer
  /// arrives later, and a stopped process does not answer. Until the answer arrives, the peer's library
  /// executes accesses, and each access checks for the answer. A longer wait would delay the operations with
  /// all other peers.
  static constexpr std::chrono::milliseconds kWelcomeMax{1};

  /// Each peer has one of `keys`, or no key if `keys` is empty. `welcome_max`: how long connect() waits for
  /// each answer.
  PeerRegionConnector(Random& random, Log& log, seal::JobKeys keys = {},
                      std::chrono::milliseconds welcome_max = kWelcomeMax)
      : random_(random), log_(log), keys_(std::move(keys)), welcome_max_(welcome_max) {}
  std::unique_ptr<LocalMemory> connect(const SocketAddress& peer) override;

 private:
  Random& random_;
  Log& log_;
  const seal::JobKeys keys_;
  const std::chrono::milliseconds welcome_max_;
};

}  // namespace cluster::shm

// Shows whether a device reports reads as done that have failed, as soft-RoCE does (docs/design/21-verbs.md).
// It uses libibverbs alone. One queue pair reads the memory of another. The program compares each part when
// its completion says success.
//
//   soft_reads DEVICE DEVICE [ROUNDS]      the devices are those of the ends of a veth pair, for example
//
// Result: 0 if each part was right, 1 if not. net.core.netdev_max_backlog=100 makes failures of soft-RoCE
// frequent.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t kParts = 16;
constexpr std::size_t kPart = 16384;
constexpr unsigned kMessages = 20;  // of a pair of queue pairs
constexpr std::uint8_t kReadsAtOnce = 16;
constexpr std::uint8_t kTimeout = 14, kRetries = 6, kRnrRetries = 7, kRnrTimer = 12;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(2);
}

template <typename Value>
Value* made(Value* value, const char* what) {
  if (value == nullptr) fail(what);
  return value;
}

/// A queue pair of a device, and what belongs to it.
struct End {
  ibv_context* context = nullptr;
  ibv_gid_entry address{};
  ibv_pd* domain = nullptr;
  ibv_cq* done = nullptr;
  ibv_qp* queue = nullptr;
  ibv_mr* memory = nullptr;
};

ibv_context* open(std::string_view name) {
  int count = 0;
  ibv_device** const devices = made(ibv_get_device_list(&count), "ibv_get_device_list");
  for (int i = 0; i < count; ++i)
    if (name == ibv_get_device_name(devices[i])) return made(ibv_open_device(devices[i]), "ibv_open_device");
  fail("no such device");
}

/// The last address is the IPv4 address of the interface.
ibv_gid_entry address_of(ibv_context* context) {
  ibv_gid_entry entries[16];
  const ssize_t count = ibv_query_gid_table(context, entries, 16, 0);
  if (count <= 0) fail("ibv_query_gid_table");
  return entries[count - 1];
}

End make(ibv_context* context, std::vector<std::byte>& memory, int access) {
  End end;
  end.context = context;
  end.address = address_of(context);
  end.domain = made(ibv_alloc_pd(context), "ibv_alloc_pd");
  end.memory = made(ibv_reg_mr(end.domain, memory.data(), memory.size(), access), "ibv_reg_mr");
  end.done = made(ibv_create_cq(context, 64, nullptr, nullptr, 0), "ibv_create_cq");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = end.done;
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {kReadsAtOnce, 1, 1, 1, 0};
  end.queue = made(ibv_create_qp(end.domain, &wanted), "ibv_create_qp");
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = 1;
  state.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  if (ibv_modify_qp(end.queue, &state,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    fail("ibv_modify_qp (init)");
  return end;
}

void connect(const End& end, const End& peer) {
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_RTR;
  state.path_mtu = IBV_MTU_1024;
  state.dest_qp_num = peer.queue->qp_num;
  state.max_dest_rd_atomic = kReadsAtOnce;
  state.min_rnr_timer = kRnrTimer;
  state.ah_attr.grh.dgid = peer.address.gid;
  state.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(end.address.gid_index);
  state.ah_attr.grh.hop_limit = 64;
  state.ah_attr.is_global = 1;
  state.ah_attr.port_num = 1;
  if (ibv_modify_qp(end.queue, &state,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    fail("ibv_modify_qp (ready to receive)");
  state = {};
  state.qp_state = IBV_QPS_RTS;
  state.timeout = kTimeout;
  state.retry_cnt = kRetries;
  state.rnr_retry = kRnrRetries;
  state.max_rd_atomic = kReadsAtOnce;
  if (ibv_modify_qp(end.queue, &state,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC) != 0)
    fail("ibv_modify_qp (ready to send)");
}

void destroy(const End& end) {
  ibv_destroy_qp(end.queue);
  ibv_destroy_cq(end.done);
  ibv_dereg_mr(end.memory);
  ibv_dealloc_pd(end.domain);
}

void begin(const End& end, const End& peer, std::size_t part) {
  const auto at = [&](const ibv_mr* memory) {
    return reinterpret_cast<std::uintptr_t>(memory->addr) + part * kPart;
  };
  ibv_sge into{at(end.memory), kPart, end.memory->lkey};
  ibv_send_wr request{};
  request.wr_id = part;
  request.sg_list = &into;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = at(peer.memory);
  request.wr.rdma.rkey = peer.memory->rkey;
  ibv_send_wr* refused = nullptr;
  if (ibv_post_send(end.queue, &request, &refused) != 0) fail("ibv_post_send");
}

struct Count {
  unsigned right = 0, failed = 0, wrong = 0;
};

/// Reads all parts once. Returns false if the queue pair has failed.
bool read_all(const End& end, const End& peer, const std::vector<std::byte>& from,
              std::vector<std::byte>& into, Count& count) {
  std::ranges::fill(into, std::byte{0});
  const Count before = count;
  for (std::size_t part = 0; part < kParts; ++part) begin(end, peer, part);
  for (std::size_t ended = 0; ended < kParts;) {
    ibv_wc wc;
    if (ibv_poll_cq(end.done, 1, &wc) != 1) continue;
    ++ended;
    if (wc.status != IBV_WC_SUCCESS) {
      if (count.failed++ == before.failed)
        std::printf("part %zu: the first error is \"%s\"\n", std::size_t{wc.wr_id},
                    ibv_wc_status_str(wc.status));
      continue;
    }
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(wc.wr_id * kPart);
    const auto last = first + kPart;
    const auto differs = std::mismatch(first, last, into.begin() + (first - from.begin())).first;
    ++(differs == last ? count.right : count.wrong);
    if (differs != last)
      std::printf("part %zu of %zu: SUCCESS, but only the first %zd of %zu bytes are right\n",
                  std::size_t{wc.wr_id}, kParts, differs - first, kPart);
  }
  return count.failed == before.failed && count.wrong == before.wrong;
}

}  // namespace

int main(int arguments, char** words) {
  if (arguments < 3) return std::fputs("soft_reads DEVICE DEVICE [ROUNDS]\n", stderr), 2;
  ibv_context* const here = open(words[1]);
  ibv_context* const there = open(words[2]);
  std::vector<std::byte> from(kParts * kPart), into(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::byte>(1 + (i * 2654435761u >> 13) % 255);
  Count count;
  for (int rounds = arguments > 3 ? std::atoi(words[3]) : 30; rounds > 0; --rounds) {
    const End end = make(here, into, IBV_ACCESS_LOCAL_WRITE),
              peer = make(there, from, IBV_ACCESS_REMOTE_READ);
    connect(peer, end);
    connect(end, peer);
    for (unsigned i = 0; i < kMessages && read_all(end, peer, from, into, count); ++i) {
    }
    destroy(end);
    destroy(peer);
  }
  std::printf("%u parts right, %u failed, %u reported as done but wrong\n", count.right, count.failed,
              count.wrong);
  return count.wrong == 0 ? 0 : 1;
}

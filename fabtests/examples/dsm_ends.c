/* One process ends a program by jia_error while the others wait: at a lock, at a barrier and for a condition. */
#include "dsm/jiajia.h"

int main(int argc, char** argv) {
  jia_init(argc, argv);
  if (jiapid == 1) jia_lock(40);
  jia_barrier();
  switch (jiapid) {
    case 0: jia_waitcv(3); break;
    case 1: jia_error("it ends here, said process %d of %d", jiapid, jiahosts); break;
    case 2: jia_lock(40); break;
    default: jia_barrier(); break;
  }
  return 0; /* nobody comes here */
}

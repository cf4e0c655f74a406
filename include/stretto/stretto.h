/* Stretto's public C interface. The functions are exported by every preload library; a program that wants them looks
 * them up with dlsym, so that it runs without Stretto too. */
#ifndef STRETTO_STRETTO_H
#define STRETTO_STRETTO_H

#ifdef __cplusplus
extern "C" {
#endif

#define STRETTO_VERSION "0.1.0"

/* The version of the loaded library, e.g. "0.1.0". */
const char* stretto_version(void);

/* The settings table, one line each: name TAB type TAB default TAB help. Static storage. */
const char* stretto_settings(void);

/* Whether this process's collectives can be accelerated at present: 1 yes, 0 no. *why (when not null) receives a static
 * string that says why, in words. Meaningful between MPI_Init and MPI_Finalize. */
int stretto_accelerating(const char** why);

#ifdef __cplusplus
}
#endif
#endif

/* agent.S - the guest agent's executable, carried inside the supervisor
 *
 * SPDX-License-Identifier: MIT */
    .section .rodata
    .globl wv_agent_image, wv_agent_image_end
    .hidden wv_agent_image, wv_agent_image_end
    .balign 16
wv_agent_image:
    .incbin "wovyr-agent"
wv_agent_image_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits

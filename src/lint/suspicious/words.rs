//! What words mean to the rules: each word that a rule looks for has one or several classes.
//!
//! Texts in Chinese, Japanese and Korean have no blanks between words, so their terms are found
//! wherever they stand. Forms are listed one by one; no grammar is known.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::fold::fold_word;

/// A set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Classes(u128);

impl Classes {
    /// To disregard something; what is disregarded follows.
    pub(super) const IGNORE: Self = Self(1);
    /// The same in languages whose verbs may come last.
    pub(super) const IGNORE_LAST: Self = Self(1 << 1);
    /// English participles of the same: disregarded, void.
    pub(super) const IGNORED: Self = Self(1 << 2);
    /// To put oneself above something.
    pub(super) const OVERRIDE: Self = Self(1 << 3);
    /// To come before something else.
    pub(super) const RANK: Self = Self(1 << 4);
    /// To act as something says.
    pub(super) const FOLLOW: Self = Self(1 << 5);
    /// What a model is instructed by.
    pub(super) const INSTRUCTIONS: Self = Self(1 << 6);
    /// What limits a model, and many other things.
    pub(super) const LIMITS: Self = Self(1 << 7);
    /// What came earlier.
    pub(super) const PRIOR: Self = Self(1 << 8);
    /// All of something.
    pub(super) const ALL: Self = Self(1 << 9);
    /// The reader of the text.
    pub(super) const YOU: Self = Self(1 << 10);
    /// The operator of a model, or what keeps it safe.
    pub(super) const SYSTEM: Self = Self(1 << 11);
    /// Within something, such as the result of a tool.
    pub(super) const WITHIN: Self = Self(1 << 12);
    /// A negation.
    pub(super) const NOT: Self = Self(1 << 13);
    /// A negation of languages whose negation may follow.
    pub(super) const NOT_ANYWHERE: Self = Self(1 << 14);
    /// A negation that makes the contrary of another one, in other languages than English.
    pub(super) const DENIAL_ANYWHERE: Self = Self(1 << 15);
    /// To tell a person something.
    pub(super) const TELL: Self = Self(1 << 16);
    /// The same in other languages than English.
    pub(super) const TELL_ANYWHERE: Self = Self(1 << 17);
    /// To speak of something.
    pub(super) const MENTION: Self = Self(1 << 18);
    /// To show something.
    pub(super) const SHOW: Self = Self(1 << 19);
    /// To come to know something.
    pub(super) const KNOW: Self = Self(1 << 20);
    /// To come to know something that is kept from one.
    pub(super) const NOTICE: Self = Self(1 << 21);
    /// A person who uses the model.
    pub(super) const USER: Self = Self(1 << 22);
    /// The same in other languages than English.
    pub(super) const USER_ANYWHERE: Self = Self(1 << 23);
    /// What a user wants, as a verb.
    pub(super) const WISH: Self = Self(1 << 24);
    /// A word that points at what the text itself says.
    pub(super) const THIS: Self = Self(1 << 25);
    /// A condition that ends a prohibition.
    pub(super) const UNTIL: Self = Self(1 << 26);
    /// Unnoticed.
    pub(super) const SECRETLY: Self = Self(1 << 27);
    /// Without a message or a noise; honest programs do much silently.
    pub(super) const SILENTLY: Self = Self(1 << 28);
    /// To send something away, as an order.
    pub(super) const SEND: Self = Self(1 << 29);
    /// What belongs to the user or to the conversation.
    pub(super) const PRIVATE: Self = Self(1 << 30);
    /// What was said in a session.
    pub(super) const CONVERSATION: Self = Self(1 << 31);
    /// A fixed address outside: of the web or of mail.
    pub(super) const DESTINATION: Self = Self(1 << 32);
    /// A word before an address from which something comes.
    pub(super) const ORIGIN: Self = Self(1 << 33);
    /// A word before an example of a value.
    pub(super) const EXAMPLE: Self = Self(1 << 34);
    /// The file of a secret.
    pub(super) const SECRET_FILE: Self = Self(1 << 35);
    /// A secret, and no other thing that is private.
    pub(super) const SECRET: Self = Self(1 << 36);
    /// The first word of what is kept secret: an SSH key, the history of a shell.
    pub(super) const KEPT: Self = Self(1 << 37);
    /// To read something, as an order.
    pub(super) const READ: Self = Self(1 << 38);
    /// What is in a file.
    pub(super) const CONTENT: Self = Self(1 << 39);
    /// Words for what was read before.
    pub(super) const IT: Self = Self(1 << 40);
    /// To hand something over with a call, as an order.
    pub(super) const PASS: Self = Self(1 << 41);
    /// What a call has.
    pub(super) const PARAMETER: Self = Self(1 << 42);
    /// An obligation, or an order of steps.
    pub(super) const MUST: Self = Self(1 << 43);
    /// A condition or a moment.
    pub(super) const WHEN: Self = Self(1 << 44);
    /// What tools that look for attacks say of them.
    pub(super) const DETECT: Self = Self(1 << 45);
    /// To use a tool.
    pub(super) const CALL: Self = Self(1 << 46);
    /// To change something.
    pub(super) const ALTER: Self = Self(1 << 47);
    /// What a message or a payment goes to.
    pub(super) const RECIPIENT: Self = Self(1 << 48);
    /// A tool.
    pub(super) const TOOL: Self = Self(1 << 49);
    /// In place of.
    pub(super) const INSTEAD: Self = Self(1 << 50);
    /// That a tool must not be used.
    pub(super) const UNUSABLE: Self = Self(1 << 51);
    /// A setting that is described.
    pub(super) const WHETHER: Self = Self(1 << 52);
    /// To keep from being seen.
    pub(super) const HIDE: Self = Self(1 << 53);
    /// An obligation that is no guess: must and should, but not may.
    pub(super) const OUGHT: Self = Self(1 << 54);
    /// To let somebody do something.
    pub(super) const LET: Self = Self(1 << 55);
    /// To take care that something happens.
    pub(super) const ENSURE: Self = Self(1 << 56);
    /// Everything that was said, as opposed to a part.
    pub(super) const WHOLE: Self = Self(1 << 57);
    /// Where a model knows something from that is no argument.
    pub(super) const SEEN: Self = Self(1 << 58);
    /// That a person cannot do something.
    pub(super) const UNABLE: Self = Self(1 << 59);
    /// A word with an underscore, as names of tools and parameters have one.
    pub(super) const NAME: Self = Self(1 << 60);
    /// What a model does or is ordered to do, which no text for people is about.
    pub(super) const OWN_ACT: Self = Self(1 << 61);
    /// To come to know something, in other languages than English.
    pub(super) const KNOW_ANYWHERE: Self = Self(1 << 62);
    /// An obligation or a permission, in other languages than English.
    pub(super) const OUGHT_ANYWHERE: Self = Self(1 << 63);
    /// To conceal, in other languages than English.
    pub(super) const CONCEAL_ANYWHERE: Self = Self(1 << 64);
    /// To make a person believe what is not so.
    pub(super) const DECEIVE: Self = Self(1 << 65);
    /// To leave out.
    pub(super) const OMIT: Self = Self(1 << 66);
    /// What is left of an act in a text.
    pub(super) const TRACE: Self = Self(1 << 67);
    /// What a tool handles; private if all of it is meant.
    pub(super) const MATTER: Self = Self(1 << 68);
    /// English participles of sending.
    pub(super) const SENT: Self = Self(1 << 69);
    /// A language model.
    pub(super) const MODEL: Self = Self(1 << 70);
    /// A condition, in other languages than English.
    pub(super) const IF_ANYWHERE: Self = Self(1 << 71);
    /// The beginning of a phrase of several words.
    pub(super) const BEGINS: Self = Self(1 << 72);
    /// Not knowing.
    pub(super) const UNAWARE: Self = Self(1 << 73);
    /// To take limits away, as an order.
    pub(super) const LIFT: Self = Self(1 << 74);
    /// To go against something.
    pub(super) const CONFLICT: Self = Self(1 << 75);
    /// A part of a text, as the text itself speaks of it.
    pub(super) const PASSAGE: Self = Self(1 << 76);
    /// To agree to something, as what a user is said to have done.
    pub(super) const CONSENT: Self = Self(1 << 77);
    /// To act, as an order.
    pub(super) const ACT: Self = Self(1 << 78);
    /// To take something for something else.
    pub(super) const TREAT: Self = Self(1 << 79);
    /// What a person says or types.
    pub(super) const SAY: Self = Self(1 << 80);
    /// Not to be seen.
    pub(super) const UNSEEN: Self = Self(1 << 81);
    /// People, as opposed to models.
    pub(super) const PEOPLE: Self = Self(1 << 82);
    /// What a secret act avoids.
    pub(super) const ATTENTION: Self = Self(1 << 83);
    /// That something went well.
    pub(super) const SUCCESS: Self = Self(1 << 84);

    /// These and others.
    pub(super) const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether it has one of these classes.
    pub(super) fn has(self, classes: Self) -> bool {
        self.0 & classes.0 != 0
    }
}

/// The classes of a word, folded.
pub(super) fn classes_of(word: &str) -> Classes {
    CLASSES.get(word).copied().unwrap_or_default()
}

/// Letters of the longest term of a language without blanks.
pub(super) const TERM_LETTERS_MAX: usize = 6;

/// The words are known and no text adds one, so a fast hash is as good as one that no text can
/// foil.
static CLASSES: LazyLock<HashMap<String, Classes, FixedState>> = LazyLock::new(|| {
    let mut classes: HashMap<String, Classes, FixedState> = HashMap::default();
    let mut folded = String::new();
    for (class, words) in VOCABULARY {
        for word in words.split_ascii_whitespace() {
            fold_word(word, &mut folded);
            let known = classes.entry(folded.clone()).or_default();
            *known = known.with(*class);
        }
    }
    classes
});

/// The words of each class. Those of languages other than English are there for the phrases that
/// are nearly never honest.
const VOCABULARY: &[(Classes, &str)] = &[
    (
        Classes::IGNORE,
        "aside omiso ignore ignoring disregard disregarding forget forgetting neglect disobey
        overlook discard ignoriere ignoriert vergiss vergesst missachte missachtet ignorez
        ignorer oublie oubliez ignora ignorad ignoren olvida olvide olvidate olvidad descarta
        descarte ignorar esqueca esquece desconsidere desconsidera ignorate ignorare dimentica
        dimenticate scorda negeer vergeet ignorera glom abaikan lupakan ignoruj zignoruj
        zignorujcie zapomnij pomin игнорируй игнорируйте игнорировать проигнорируй
        проигнорируйте забудь забудьте ігноруй ігноруйте 忽略 忽视 忽視 无视 無視 忘记 忘記 忘掉 不理会 不要遵循 不要遵守
        تجاهل تجاهلي انس",
    ),
    (
        Classes::IGNORE_LAST,
        "ignorieren vergessen missachten negeren vergeten 無視 忘れて 忘れろ 忘れなさい 従わな 従うな 무시 잊어 잊으 따르지
        yoksay yoksayin unut unutun gormezden dikkate अनदेखा अनदेखी नजरअंदाज नज़रअंदाज भूल",
    ),
    (
        Classes::IGNORED,
        "ignored disregarded forgotten void voided cancelled canceled superseded revoked annulled suspended
        lifted waived",
    ),
    (
        Classes::OVERRIDE,
        "erase wipe unlearn disable deactivate suspend lift abandon override supersede supersedes
        bypass circumvent overrides overrule overrules",
    ),
    (Classes::RANK, "precedence priority outranks outrank"),
    (
        Classes::FOLLOW,
        "following obeying adhering complying attention notice compte suivez suis folge folgt
        befolge befolgen sigas siga segui следуй следуйте выполняй 遵循 遵守 従 follow obey heed
        respect adhere comply listen observe apply",
    ),
    (
        Classes::INSTRUCTIONS,
        "프롬프트 프롬프트를 directions systemprompt systemprompts systemnachricht instruction
        instructions directive directives prompt prompts guideline guidelines programming
        training anweisung anweisungen instruktionen vorgaben anordnungen richtlinien regeln
        consigne consignes instrucciones instruccion principles directrices indicaciones ordenes reglas
        instrucoes instrucao diretrizes orientacoes regras ordens istruzioni direttive regole
        instructies aanwijzingen regels instruktioner instruksi perintah instrukcje instrukcji
        polecenia polecen инструкции инструкций инструкцию инструкциями указания указаний
        правила інструкції вказівки talimat talimatlar talimatlari yonergeleri komutlari 指令 指示
        说明 說明 提示词 提示 命令 规则 規則 プロンプト ルール 지시 명령 지침 규칙 التعليمات تعليمات الاوامر الأوامر निर्देश
        निर्देशों निर्देशो guidance",
    ),
    (
        Classes::LIMITS,
        "filter filters checks rule rules policy policies restriction restrictions safeguard
        safeguards constraint constraints guardrail guardrails limitation limitations
        protections orders",
    ),
    (
        Classes::PRIOR,
        "previous previously prior earlier above preceding former foregoing past existing
        original initial current vorherige vorherigen bisherige bisherigen vorigen vorige
        fruheren fruhere obigen vorangegangenen precedente precedentes anterieures dessus
        anterior anteriores previas previos precedenti eerdere voorgaande bovenstaande tidigare
        sebelumnya poprzednie poprzednich wczesniejsze предыдущие предыдущих прежние прежних
        попередні onceki 之前 以前 先前 上述 前面 此前 以上 これまで それまで 前の 上記 今まで 今までの 先の 이전 앞선 지금까지 앞의 위의
        السابقة पिछले पिछली पूर्व पहले",
    ),
    (
        Classes::ALL,
        "all any every everything other whatever anything entire entirely alle alles samtliche
        jegliche toutes tous tout todas todo todos tudo tutte tutti все всех wszystkie
        wszystkich усі всі tum butun alla semua 所有 全部 一切 任何 すべて 全て 모든 모두 جميع كل सभी सब",
    ),
    (
        Classes::YOU,
        "you your yours you're you've yourself deine deinen deiner ihre ihren eure vos tes votre
        tus sus suas seus tue tuoi je jouw uw твои ваши свои твоих ваших 你的 您的 你 您 あなたの あなた 당신의
        당신",
    ),
    (
        Classes::SYSTEM,
        "systemprompt systemprompts systemnachricht system developer developer's developers
        safety ethical ethics moderation sicherheits securite seguridad системные 系统 系統 安全 システム
        시스템",
    ),
    (
        Classes::WITHIN,
        "in within inside contained contain containing embedded found from appear appearing
        appears appeared present returned content contents page pages document documents text
        texts result results output outputs retrieved fetched external",
    ),
    (
        Classes::NOT,
        "stop cease not don't dont never no without cannot can't mustn't shouldn't won't nor
        refrain avoid neither",
    ),
    (
        Classes::NOT_ANYWHERE,
        "无需 无须 不必 不用 不应该 不应 不该 不可以 nicht nichts niemals nie ohne keinesfalls ne n pas rien jamais
        sans no nunca sin jamas nao sem non mai senza niet nooit zonder niets не никогда без
        ничего nigdy bez inte utan aldrig jangan tanpa 不要 不得 不能 不可 别 別 勿 不许 切勿 無需 禁止 しないで せずに ないで いけない
        しない なし 없이 말고 말아 마십 마세 말 마라 لا دون بدون मत बिना नहीं hicbir soyleme bildirme bahsetme
        言わない 言うな 伝えない 伝えるな 知らせない 知らせず 教えない 告げず 話すな 伝えず 言わず 教えるな 知らせるな 明かさない 알리지 말하지 언급하지 알려주지
        밝히지",
    ),
    (
        Classes::DENIAL_ANYWHERE,
        "ohne sans sin sem senza zonder без bez utan tanpa 未 せずに 知らせず 告げず 伝えず 言わず 없이 않고
        بدون बिना kein keine keinen keinem keiner ninguno ningun aucun aucune nessun nessuno geen いけません",
    ),
    (Classes::TELL, "alerting tell telling told inform informing informed"),
    (
        Classes::TELL_ANYWHERE,
        "tahu memberitahu sag sage sagen sagt erzahle erzahlen erzahlt informiere informieren
        informiert mitteilen mitgeteilt teile verrate verraten erwahne erwahnen erwahnt gesagt
        benachrichtige benachrichtigen dis dites dire informe informez informer mentionne
        mentionnez mentionner parle parlez revele revelez previens prevenez prevenir digas diga
        decir decirle dile informes informar mencionar menciones mencione cuentes reveles avisar
        conte contar avise revelar dica dici dirlo informare informate menzionare menzionate
        rivelare avvisare vertel vertellen informeer informeren vermeld vermelden noem сообщай
        сообщайте сообщать говори говорите говорить рассказывай рассказывайте упоминай
        упоминайте информируй информируйте уведомляй уведомляйте уведомления ведома раскрывай
        mow mowic informuj informowac wspominaj beratta informera namn beritahu memberi 告诉 告訴 告知
        通知 提及 提到 透露 提醒 言わない 言うな 伝えない 伝えるな 知らせない 知らせず 教えない 告げず 話すな 伝えず 言わず 教えるな 知らせるな 明かさない 言及 報告
        알리지 말하지 언급하지 알려주지 밝히지 알리 말하 언급 تخبر تخبري إخبار اخبار تذكر बताएं बताना बताओ बताए बताइए
        soyleme bildirme bahsetme",
    ),
    (
        Classes::MENTION,
        "talk speak mention mentioning mentioned reveal revealing disclose disclosing notify
        notifying notified alert alerting report reporting say saying discuss discussing
        acknowledge admit",
    ),
    (Classes::SHOW, "show showing display displaying expose exposing surface output print"),
    (
        Classes::KNOW,
        "know knowing knowledge known aware awareness told informed notified notice noticing
        noticed realize realizing realise realising suspect suspecting discover discovering
        learn find finds learns",
    ),
    (
        Classes::NOTICE,
        "notice noticing noticed realize realizing realise realising suspect suspecting discover
        discovering learn find finds learns aware",
    ),
    (
        Classes::USER,
        "user users user's human humans human's person anyone anybody them him her operator
        operator's customer owner",
    ),
    (
        Classes::USER_ANYWHERE,
        "للمستخدم benutzer benutzers nutzer nutzers anwender utilisateur utilisateurs usuario
        usuarios utilizador utente utenti gebruiker пользователю пользователя пользователь
        пользователям uzytkownikowi uzytkownika anvandaren pengguna kullaniciya kullanici 用户 用戶
        使用者 ユーザー ユーザ 利用者 사용자 المستخدم उपयोगकर्ता यूजर यूज़र",
    ),
    (Classes::WISH, "asked asks says said wants wanted"),
    (Classes::THIS, "this these it that anything"),
    (Classes::UNTIL, "until unless till bis jusqu hasta ate finche пока 直到 除非 まで"),
    (
        Classes::SECRETLY,
        "secretly covertly surreptitiously stealthily clandestinely unnoticed heimlich
        secretement secretamente",
    ),
    (Classes::SILENTLY, "silently quietly invisibly discreetly"),
    (
        Classes::SEND,
        "transfer mirror send forward transmit upload post exfiltrate submit relay leak bcc cc
        email mail push copy deliver share ship pipe sende senden schicke schicken ubermittle
        ubermitteln leite envoie envoyez envoyer transmets transmettez envia envie enviar
        reenvia reenvie mande encaminhe invia inviate inviare stuur verstuur отправь отправьте
        отправляй отправляйте отправить перешли wyslij przeslij skicka kirim gonder 发送 發送 发给 上传
        上傳 转发 轉發 送信 送って 送る 転送 アップロード 전송 보내 أرسل ارسل भेजें भेजो",
    ),
    (
        Classes::PRIVATE,
        "environment conversation conversations transcript history password passwords credential
        credentials secrets cookies inbox chats messages emails contacts personal confidential
        private sensitive clipboard everything contents keys tokens documents files prompt
        prompts data passwort passworter zugangsdaten unterhaltung gesprach verlauf chatverlauf
        mots passe identifiants historique donnees contrasena contrasenas credenciales
        conversacion historial datos senha senhas conversa historico dados conversazione
        cronologia dati credenziali wachtwoorden gesprek пароли пароль переписку историю данные
        hasla haslo rozmowe losenord kata percakapan 密码 密碼 对话 對話 聊天记录 聊天記錄 凭证 密钥 会話 パスワード 認証情報
        履歴 대화 비밀번호 المحادثة كلمات पासवर्ड बातचीत",
    ),
    (Classes::CONVERSATION, "conversation chat transcript messages"),
    (Classes::ORIGIN, "from via of in see on by using with"),
    (Classes::EXAMPLE, "e.g g example like default defaults"),
    (
        Classes::SECRET_FILE,
        "id_rsa id_ed25519 id_ecdsa id_dsa bash_history zsh_history authorized_keys",
    ),
    (
        Classes::SECRET,
        "password passwords credential credentials secrets key keys token tokens cookies history
        keychain phrase",
    ),
    (
        Classes::KEPT,
        "ssh private shell bash zsh saved stored aws session terminal browser browser's command",
    ),
    (
        Classes::READ,
        "obtain read cat open load fetch retrieve dump grab collect extract gather lies lese lis
        lisez lire lee lea leer lean leia leggi leggere lees прочитай прочитайте прочти считай
        take przeczytaj las baca oku 读取 讀取 读 読み込 読み取 読んで 読み 읽 اقرأ पढ़ें पढ़ो find look locate",
    ),
    (
        Classes::CONTENT,
        "content contents inhalt inhalte contenu contenido conteudo contenuto inhoud содержимое
        zawartosc isi icerigini 内容 內容 내용 محتوى सामग्री",
    ),
    (Classes::IT, "it its them their output"),
    (
        Classes::PASS,
        "enter fill set return give 放入 填写 pass put attach append add provide supply insert place
        embed paste include ubergib ubergebe fuge gib passe passez ajoute ajoutez mets transmets
        pasa pasalo incluye anade adjunta inclua adicione coloque passa aggiungi includi передай
        передайте включи вставь добавь przekaz dolacz 传入 传递 傳入 作为 作為 填入 附上 渡し 渡す 含め 付け 설정 넣 전달
        مرر डालें",
    ),
    (
        Classes::PARAMETER,
        "value parameter parameters argument arguments field param params sidenote parametro
        parametre parametr параметр параметре 参数 參數 パラメータ パラメーター 引数 매개변수 인자",
    ),
    (
        Classes::MUST,
        "must always first please mandatory required need needs should ensure remember important
        critical necessary shall musst mussen zuerst immer unbedingt dois devez toujours abord
        debes debe primero siempre antes deve sempre prima moet altijd eerst должен должны
        сначала всегда необходимо musisz zawsze najpierw 必须 必須 首先 务必 請務必 まず 必ず 반드시 먼저 항상 يجب
        हमेशा पहले",
    ),
    (
        Classes::WHEN,
        "when whenever if before after once each every time prior anytime while wenn bevor sobald
        quand avant lorsque cuando antes quando когда перед kiedy 当 當 每当 每次 在 前に とき 場合",
    ),
    (
        Classes::DETECT,
        "detect detects detecting detected detection detector scan scans scanning scanner flag
        flags flagging identify identifies identifying classify classifies classifier
        blocks blocking prevent prevents preventing attack attacks injection injections
        jailbreak jailbreaks malicious phrase phrases sanitize sanitizes sanitise sanitises
        untrusted adversarial attempting attempts erkennt erkennen detecte detecta обнаруживает
        检测 検出",
    ),
    (
        Classes::CALL,
        "call calls calling called invoke invokes invoking invoked use uses using used run runs
        running execute executes executing executed available present trigger triggered",
    ),
    (
        Classes::ALTER,
        "multiply double modify change replace redirect alter swap substitute
        rewrite reroute overwrite",
    ),
    (Classes::RECIPIENT, "recipient recipients account payee iban beneficiary wallet bcc cc"),
    (Classes::TOOL, "tool tools function"),
    (Classes::INSTEAD, "instead"),
    (
        Classes::UNUSABLE,
        "forbidden prohibited outdated broken unsafe compromised insecure malicious dangerous
        infected untrustworthy",
    ),
    (Classes::WHETHER, "whether true false flag option optional boolean"),
    (Classes::HIDE, "hide hiding conceal concealing keep withhold"),
    (Classes::OUGHT, "must should shall never mustn't shouldn't"),
    (Classes::LET, "let letting allow"),
    (Classes::ENSURE, "ensure sure so"),
    (
        Classes::WHOLE,
        "all every everything entire full whole complete verbatim any also copy always each alle
        gesamte gesamten ganze toute tout toda todo tutta tutto всю все 所有 全部 整个 すべて 全て 모든 전체",
    ),
    (Classes::SEEN, "memory conversation seen context"),
    (Classes::UNABLE, "can't cannot unable don't doesn't lack"),
    (
        Classes::OWN_ACT,
        "calls fact step steps action actions instruction instructions call reading directive
        directives requirement transfer copying activity behavior behaviour request access",
    ),
    (
        Classes::KNOW_ANYWHERE,
        "erfahren wissen bemerken merken mitbekommen savoir sache remarquer informe informee
        saber sepa enterarse notar sapere sappia accorgersi weten знать узнать заметить wiedziec
        dowiedziec 知道 知晓 知情 察觉 发现 知る 気づ 気付 알게 눈치",
    ),
    (
        Classes::OUGHT_ANYWHERE,
        "不应该 不应 不该 不可以 darf durfen soll sollen sollte doit doivent devrait debe deben deberia
        deve devem devono mag mogen должен должны должна powinien moze lass lasse lassen laisse
        laissez deja dejes deixe lascia lasciare laat 应该 应 應 该 能 让 讓 必须 べき 않도록",
    ),
    (
        Classes::CONCEAL_ANYWHERE,
        "秘密に 内緒に 비밀로 몰래 verheimliche verheimlichen verschweige verschweigen dissimule dissimulez
        dissimuler ocultale ocultaselo nascondilo verzwijg скрой скрывай скрывайте утаи zataj 隐瞒
        隱瞞 瞒着 隠蔽 隠して 숨기고 숨겨",
    ),
    (Classes::DECEIVE, "pretend pretending lie deceive mislead fool trick"),
    (Classes::OMIT, "deny omit exclude suppress strip leave fail hesitate"),
    (Classes::TRACE, "mention hint trace"),
    (
        Classes::MATTER,
        "inputs answers responses outputs message email mail file document prompt answer response
        input query result reply text argument arguments",
    ),
    (
        Classes::SENT,
        "mirrored submitted transferred logged reported sent forwarded copied transmitted
        uploaded posted relayed",
    ),
    (
        Classes::MODEL,
        "ai model assistant llm agent assistants agents models claude gpt chatgpt gemini copilot",
    ),
    (
        Classes::IF_ANYWHERE,
        "wenn falls sofern si cuando quand lorsque если когда jesli als indien 如果 若 假如 除非 場合 とき
        なら もし 만약 경우 않으면 إذا यदि अगर eger",
    ),
    (Classes::UNAWARE, "unaware"),
    (Classes::LIFT, "drop lift suspend waive abandon discard relax remove disable"),
    (
        Classes::CONFLICT,
        "conflict conflicts contradict contradicts contrary violates violate",
    ),
    (
        Classes::PASSAGE,
        "block section paragraph passage note notice text part line lines sentence message
        comment description hint remark",
    ),
    (
        Classes::CONSENT,
        "approved approves authorized authorised authorizes authorises consented consents agreed
        agrees permitted permits consent consenting",
    ),
    (
        Classes::ACT,
        "act proceed continue go run execute perform book pay buy order delete transfer submit
        approve confirm install call",
    ),
    (Classes::ATTENTION, "attention suspicion suspicions"),
    (
        Classes::SUCCESS,
        "succeeded success successful successfully passed passes done complete completed safe clean",
    ),
    (Classes::TREAT, "treat consider regard interpret handle"),
    (
        Classes::SAY,
        "says said say writes wrote write typed types type tells told entered enters sends sent",
    ),
    (Classes::UNSEEN, "invisible hidden unseen concealed"),
    (
        Classes::PEOPLE,
        "people humans human persons person users user readers anyone",
    ),
    (Classes::BEGINS, "you your from"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::suspicious::fold::is_without_blanks;

    #[test]
    fn terms_are_found_in_texts_without_blanks() {
        for word in VOCABULARY
            .iter()
            .flat_map(|row| row.1.split_ascii_whitespace())
        {
            if word.chars().all(is_without_blanks) {
                assert!(word.chars().count() <= TERM_LETTERS_MAX, "{word}");
            }
        }
    }
}
